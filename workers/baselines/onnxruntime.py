"""ONNX Runtime as reference and baseline: what most people would run instead."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

from workers.baselines.arrays import save_reference
from workers.baselines.inputs import seeded_inputs
from workers.baselines.order import Order, answer, warm_ups
from workers.baselines.session import REFUSALS, OnnxRuntimeSession
from workers.networks.check import checked
from workers.networks.inspect import Inspection, inspect_model
from workers.networks.precision import is_quantised, stored_by
from workers.networks.rewriting import sort_topk, with_sizes
from workers.networks.vocabulary import vocabularies

NAME = "onnxruntime"
NUDGED = 2.0**-22
"""Of itself: two units of float32's last place."""
SLOW = 20.0
"""Seconds of all seeds: operator by operator takes several times as long, and that twice, within the time of one answer."""


def measured(order: Order, asked: Iterable[object] = ()) -> Iterator[dict[str, Any]]:
    """Latency, and again whenever it is `asked`; without timed runs, inputs and outputs of every seed as
    <outputs_dir>/reference-<seed>.npz (see `arrays.load_reference`), and of a quantised network those that its operators make
    one by one as defined-<seed>.npz, and the same of scales and inputs that are NUDGED as nudged-<seed>.npz.

    Raises NetworkError for a bad network, ValueError for shapes that are missing.
    """
    model = checked(order.network)
    inspection = inspect_model(model)
    if inspection.dynamic or _without_rank(inspection):
        with_sizes(model, order.shapes)
    rows = vocabularies(model)  # of these sizes: what is compared with an open one may be of any length
    inputs = {
        seed: seeded_inputs(inspection, seed, order.shapes, rows, order.scale, order.positive) for seed in order.seeds
    }
    source, sizes = _source(order, inspection, model)
    if not order.runs:
        quantised = model if is_quantised(model) else None
        del model
        yield _references(order, inputs, source, sizes, quantised)
        return
    del model
    session = OnnxRuntimeSession(source, order.threads, sizes=sizes)
    for warm_up in warm_ups(order.warm_up, asked):
        session.bind(inputs[order.seeds[0]], warm_up)
        yield answer(NAME, order, session.time(order.runs, order.longest), onnxruntime.__version__)


def _references(
    order: Order,
    inputs: Mapping[int, dict[str, Any]],
    source: str | bytes,
    sizes: Mapping[str, int],
    quantised: ModelProto | None,
) -> dict[str, Any]:
    """The answer, with others where the network is `quantised`, and not SLOW."""
    exact = OnnxRuntimeSession(source, order.threads, sizes=sizes, exact=True)
    began = time.monotonic()
    references, others = _kept(order, "reference", inputs, exact), list[dict[int, str]]()
    del exact
    if quantised is not None and time.monotonic() - began < SLOW:
        nudged = {seed: {name: _nudged(array) for name, array in given.items()} for seed, given in inputs.items()}
        with suppress(*REFUSALS):  # it lacks kernels for some of these numbers
            plain = OnnxRuntimeSession(source, order.threads, sizes=sizes, defined=True)
            others.append(_kept(order, "defined", inputs, plain))
            del plain
            _nudge_scales(quantised)
            moved = OnnxRuntimeSession(quantised.SerializeToString(), order.threads, sizes=sizes, defined=True)
            others.append(_kept(order, "nudged", nudged, moved))
    by_seed = {seed: [kept[seed] for kept in others] for seed in inputs}
    return answer(NAME, order, np.empty(0), onnxruntime.__version__, references, by_seed)


def _kept(order: Order, kind: str, inputs: Mapping[int, dict[str, Any]], session: OnnxRuntimeSession) -> dict[int, str]:
    folder = Path(order.outputs_dir)
    folder.mkdir(parents=True, exist_ok=True)
    references = {seed: folder / f"{kind}-{seed}.npz" for seed in inputs}
    for seed, given in inputs.items():
        save_reference(references[seed], given, session.run(given))
    return {seed: str(path) for seed, path in references.items()}


def _nudge_scales(model: ModelProto) -> None:
    """Those of quantisations, each by another part of itself, for all by one would leave their ratios: what is halfway between
    two steps is rounded to the other."""
    rng = np.random.default_rng(0)
    scales = set(filter(None, map(stored_by, model.graph.node)))
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    constants = [node for node in model.graph.node if node.op_type == "Constant"]
    tensors |= {node.output[0]: one.t for node in constants for one in node.attribute if one.name == "value"}
    for name, tensor in tensors.items():
        if name in scales:
            scale = _nudged(numpy_helper.to_array(tensor), rng.choice((-2, -1, 1, 2)))
            tensor.CopyFrom(numpy_helper.from_array(scale, tensor.name))


def _nudged(array: NDArray[Any], times: int = 1) -> NDArray[Any]:
    """Whole numbers stay."""
    return (array * (1 + times * NUDGED)).astype(array.dtype) if array.dtype.kind == "f" else array


def _without_rank(inspection: Inspection) -> bool:
    return any(port.shape is None for port in inspection.inputs)


def _source(order: Order, inspection: Inspection, model: ModelProto) -> tuple[str | bytes, dict[str, int]]:
    """A network for a session, and the sizes by name that it is compiled for; what has no name is set in a copy, `model`. The
    reference's TopKs sort, for in any order two are never alike."""
    unnamed = any(d.symbol is None for d in inspection.dynamic) or _without_rank(inspection)
    resorted = not order.runs and sort_topk(model)
    if unnamed or resorted:
        return model.SerializeToString(), {}
    return order.network, {d.symbol: order.shapes[d.input][d.axis] for d in inspection.dynamic if d.symbol}
