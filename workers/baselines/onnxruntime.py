"""ONNX Runtime as reference and baseline: what most people would run instead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from workers.baselines.inputs import seeded_inputs
from workers.baselines.order import Order, answer
from workers.baselines.session import OnnxRuntimeSession
from workers.networks.inspect import inspect

NAME = "onnxruntime"


def measure(order: Order) -> dict[str, Any]:
    """Latency, and inputs and outputs of every seed as <outputs_dir>/reference-<seed>.npz (see `load_reference`).

    Raises NetworkError for a bad network, ValueError for shapes that are missing.
    """
    inspection = inspect(order.network)
    session = OnnxRuntimeSession(order.network, order.threads)
    folder = Path(order.outputs_dir)
    folder.mkdir(parents=True, exist_ok=True)
    references: dict[int, str] = {}
    for seed in order.seeds:
        inputs = seeded_inputs(inspection, seed, order.shapes, order.vocabulary)
        path = folder / f"reference-{seed}.npz"
        save_reference(path, inputs, session.run(inputs))
        references[seed] = str(path)
    seconds = np.empty(0)
    if order.runs:
        session.bind(seeded_inputs(inspection, order.seeds[0], order.shapes, order.vocabulary), order.warm_up)
        seconds = session.time(order.runs, order.longest)
    return answer(NAME, order, seconds, references, onnxruntime.__version__)


def save_reference(path: Path, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    """Writes both whole or not at all."""
    arrays = {f"in:{name}": a for name, a in inputs.items()} | {f"out:{name}": a for name, a in outputs.items()}
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        # Names come from the network: as file names inside the archive they are never extracted.
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def load_reference(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs of `save_reference`."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    inputs = {name[3:]: array for name, array in arrays.items() if name.startswith("in:")}
    return inputs, {name[4:]: array for name, array in arrays.items() if name.startswith("out:")}
