"""ONNX Runtime as reference and baseline: what most people would run instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from workers.baselines.arrays import save
from workers.baselines.inputs import seeded_inputs
from workers.baselines.order import Order, answer
from workers.baselines.session import OnnxRuntimeSession
from workers.networks.check import load
from workers.networks.inspect import Inspection, inspect
from workers.networks.shapes import set_static_shapes

NAME = "onnxruntime"


def measure(order: Order) -> dict[str, Any]:
    """Latency; without timed runs, inputs and outputs of every seed as <outputs_dir>/reference-<seed>.npz (see
    `load_reference`).

    Raises NetworkError for a bad network, ValueError for shapes that are missing.
    """
    inspection = inspect(order.network)
    inputs = {seed: seeded_inputs(inspection, seed, order.shapes, order.vocabulary) for seed in order.seeds}
    session = _session(order, inspection)
    references: dict[int, str] = {}
    seconds = np.empty(0)
    if order.runs:
        session.bind(inputs[order.seeds[0]], order.warm_up)
        seconds = session.time(order.runs, order.longest)
    else:
        folder = Path(order.outputs_dir)
        folder.mkdir(parents=True, exist_ok=True)
        for seed, given in inputs.items():
            path = folder / f"reference-{seed}.npz"
            save_reference(path, given, session.run(given))
            references[seed] = str(path)
    return answer(NAME, order, seconds, references, onnxruntime.__version__)


def _session(order: Order, inspection: Inspection) -> OnnxRuntimeSession:
    """With the sizes that the network is compiled for. ONNX Runtime is told them by name; what has none is set in a copy."""
    unnamed = any(d.symbol is None for d in inspection.dynamic) or any(port.shape is None for port in inspection.inputs)
    if not unnamed:
        sizes = {d.symbol: order.shapes[d.input][d.axis] for d in inspection.dynamic if d.symbol}
        return OnnxRuntimeSession(order.network, order.threads, sizes=sizes)
    model = load(order.network)
    set_static_shapes(
        model, {port.name: order.shapes[port.name] for port in inspection.inputs if port.name in order.shapes}
    )
    return OnnxRuntimeSession(model.SerializeToString(), order.threads)


def save_reference(path: Path, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    """Writes both whole or not at all."""
    arrays = {f"in:{name}": a for name, a in inputs.items()} | {f"out:{name}": a for name, a in outputs.items()}
    save(path, arrays)


def load_reference(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs of `save_reference`."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    inputs = {name[3:]: array for name, array in arrays.items() if name.startswith("in:")}
    return inputs, {name[4:]: array for name, array in arrays.items() if name.startswith("out:")}
