"""ONNX Runtime as reference and baseline: what most people would run instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto

from workers.baselines.arrays import save_reference
from workers.baselines.inputs import seeded_inputs
from workers.baselines.order import Order, answer, warm_ups
from workers.baselines.session import OnnxRuntimeSession
from workers.networks.check import load
from workers.networks.inspect import Inspection, inspect_model
from workers.networks.rewriting import drop_unused_inputs, sort_topk
from workers.networks.shapes import set_static_shapes
from workers.networks.vocabulary import vocabularies

NAME = "onnxruntime"


def measured(order: Order, asked: Iterable[object] = ()) -> Iterator[dict[str, Any]]:
    """Latency, and again whenever it is `asked`; without timed runs, inputs and outputs of every seed as
    <outputs_dir>/reference-<seed>.npz (see `arrays.load_reference`).

    Raises NetworkError for a bad network, ValueError for shapes that are missing.
    """
    model = load(order.network)
    inspection = inspect_model(model)
    if inspection.dynamic or _without_rank(inspection):
        drop_unused_inputs(model)
        set_static_shapes(
            model, {port.name: order.shapes[port.name] for port in inspection.inputs if port.name in order.shapes}
        )
    rows = vocabularies(model)  # of these sizes: what is compared with an open one may be of any length
    inputs = {
        seed: seeded_inputs(inspection, seed, order.shapes, rows, order.scale, order.positive) for seed in order.seeds
    }
    session = _session(order, inspection, model)
    del model
    if not order.runs:
        yield answer(NAME, order, np.empty(0), _references(order, inputs, session), onnxruntime.__version__)
        return
    for warm_up in warm_ups(order.warm_up, asked):
        session.bind(inputs[order.seeds[0]], warm_up)
        yield answer(NAME, order, session.time(order.runs, order.longest), {}, onnxruntime.__version__)


def _references(order: Order, inputs: dict[int, dict[str, Any]], session: OnnxRuntimeSession) -> dict[int, str]:
    folder = Path(order.outputs_dir)
    folder.mkdir(parents=True, exist_ok=True)
    references = {seed: folder / f"reference-{seed}.npz" for seed in inputs}
    for seed, given in inputs.items():
        save_reference(references[seed], given, session.run(given))
    return {seed: str(path) for seed, path in references.items()}


def _without_rank(inspection: Inspection) -> bool:
    return any(port.shape is None for port in inspection.inputs)


def _session(order: Order, inspection: Inspection, model: ModelProto) -> OnnxRuntimeSession:
    """With the sizes that the network is compiled for: ONNX Runtime is told them by name; what has none is set in a copy,
    `model`. As everybody runs it where it is timed, exact where it is the reference, whose TopKs sort, for in any order two are
    never alike."""
    exact = not order.runs
    unnamed = any(d.symbol is None for d in inspection.dynamic) or _without_rank(inspection)
    resorted = exact and sort_topk(model)
    if unnamed or resorted:
        return OnnxRuntimeSession(model.SerializeToString(), order.threads, exact=exact)
    sizes = {d.symbol: order.shapes[d.input][d.axis] for d in inspection.dynamic if d.symbol}
    return OnnxRuntimeSession(order.network, order.threads, sizes=sizes, exact=exact)
