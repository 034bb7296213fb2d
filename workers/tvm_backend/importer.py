"""From a cleaned ONNX graph to the TensorIR functions that are tuned."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from workers.networks.errors import shown
from workers.networks.graph import operator_types
from workers.networks.importable import check_operators
from workers.tvm_backend import (
    clips,
    concatenation,
    constants,
    extrema,
    fast_math,
    integers,
    interleaving,
    layout_free,
    normalizations,
    permutations,
    reductions,
    rereading,
    resizing,
    rows,
    slices,
    transpositions,
    winograd,
)
from workers.tvm_backend.hardware import is_gpu, vector_lanes
from workers.tvm_backend.integers.sums import LAYOUTS

NHWC = {
    **{name: list(layouts) for name, layouts in LAYOUTS.items()},
    "relax.nn.conv1d_transpose": ["NCW", "IOW"],
    "relax.nn.conv2d_transpose": ["NCHW", "IOHW"],
    "relax.nn.conv3d_transpose": ["NCDHW", "IODHW"],
}
"""What is not named here goes along, and TVM has no program for a transposed convolution in NHWC."""

COMPUTING = ("relax.nn.", "relax.image.", "relax.vision.")


class ImportFailed(Exception):
    """TVM cannot import the network; the text names the reason for the user."""


@dataclass(frozen=True)
class Imported:
    """A network as fused TensorIR functions under one main function. `notes` are plain sentences for the run's log."""

    mod: tvm.IRModule
    layout: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Way:
    """How convolutions are laid out; with a machine's `balance` those that it pays for are transformed, and `exactly` if sums
    are whole numbers, which others would blur."""

    name: str
    layout: str
    balance: float | None = None
    exactly: bool = False


def import_network(
    model: onnx.ModelProto,
    shapes: dict[str, list[int]],
    target: tvm.target.Target,
    layout: str = "auto",
    balance: float | None = None,
) -> Imported:
    """Imports with static `shapes`, convolutions in NHWC where the conversion holds and `layout` is not "NCHW", else in NCHW.

    With a processor's `balance`, FLOP that it does while a byte comes from memory, convolutions are transformed where that
    makes them cheaper. A way that does not hold is named in the notes, with the reason, and the next one tried; raises
    ImportFailed when none does, and NetworkError like `check_operators`. What holds is what converts and lowers; that it
    also computes the same is for the verification.
    """
    kinds = operator_types(model)
    check_operators(kinds)
    return _imported(_frontend(model, shapes), target, _ways(kinds, layout, None if is_gpu(target) else balance))


def _imported(
    mod: tvm.IRModule, target: tvm.target.Target, ways: Sequence[Way], refused: tuple[str, ...] = ()
) -> Imported:
    """In the first of `ways` that holds; `refused` says which did not, and why."""
    way, *others = ways
    try:
        lowered, notes = _lowered(mod, target, way)
    except Exception as error:  # TVM raises whatever its C++ throws
        refused = (*refused, f"{way.name} does not hold here ({last_line(error)})")
        if not others:
            raise ImportFailed(f"TVM cannot lower this network: {'; '.join(refused)}") from error
    else:
        return Imported(lowered, way.layout, (*(f"{why}: imported in {way.name}" for why in refused), *notes))
    return _imported(mod, target, others, refused)


def _ways(kinds: set[str], layout: str, balance: float | None) -> list[Way]:
    """For a network of these operator types, the best first."""
    if "Conv" not in kinds:
        return [Way("its own layout", "none")]
    ways = [Way("NCHW", "NCHW")]
    if layout != "NCHW":
        ways.insert(0, Way("NHWC", "NHWC"))
        if balance is not None:
            quantised = bool(kinds & {"Round", "DynamicQuantizeLinear"})
            ways.insert(0, Way("NHWC with Winograd's minimal filtering", "NHWC", balance, quantised))
    return ways


def _lowered(mod: tvm.IRModule, target: tvm.target.Target, way: Way) -> tuple[tvm.IRModule, list[str]]:
    notes: list[str] = []
    if way.layout == "NHWC":
        mod = relax.transform.ConvertLayout(NHWC)(mod)
    mod = tvm.transform.Sequential([permutations.Compose()])(mod)
    if is_gpu(target):
        return rereading.marked(_lower_for_gpu(mod, target)), notes
    filtered = 0
    if way.balance is not None and not way.exactly:
        mod, filtered = winograd.transformed(mod, vector_lanes(target), way.balance)
    mod, whole = integers.rewritten(mod, target, way.balance)
    mod = tvm.transform.Sequential([interleaving.Interleave()])(mod)
    counts = {
        "convolutions computed by Winograd's minimal filtering": filtered + whole[integers.FILTERED],
        "convolutions and products of whole numbers, four at a time": whole[integers.FOURS.name],
        "convolutions and products of whole numbers, two at a time": whole[integers.PAIRS.name],
    }
    notes += [f"{what}: {count}" for what, count in counts.items() if count]
    return rereading.marked(_lower(mod, target)), notes


def _frontend(model: onnx.ModelProto, shapes: dict[str, list[int]]) -> tvm.IRModule:
    try:
        with extrema.two_by_two(), warnings.catch_warnings():
            # Of a LayerNormalization before operator set 17, which ONNX's checker does not know.
            warnings.filterwarnings("ignore", message=".*No Op registered for LayerNormalization")
            return from_onnx(model, shape_dict=shapes, keep_params_in_input=False)
    except Exception as error:
        raise ImportFailed(f"TVM cannot import this network: {_converted(error)}{last_line(error)}") from error


def _converted(error: Exception) -> str:
    """The operator at which TVM's frontend was, which its errors do not name."""
    named = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node = frame.f_locals.get("node")
        if isinstance(node, onnx.NodeProto):  # those of an inner graph come last
            named = f"{node.op_type} {shown(node.name or node.output[0])}: "
    return named


def _lower(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    passes = [
        relax.transform.FastMathTransform(),
        *_simplified(),
        slices.Slice(),
        resizing.Apart(),
        *_fused({**fast_math.LEGALIZED, **concatenation.LEGALIZED, **rows.LEGALIZED}),
        relax.transform.AttachAttrLayoutFreeBuffers(),
    ]
    with target:
        lowered = _whole(tvm.transform.Sequential(passes)(mod))
    # Constants that are read by rows keep their order: their leave is taken back after.
    lowered = layout_free.settle(rows.flattened(concatenation.in_vectors(lowered)))
    lowered = transpositions.tiled(lowered, target)
    cores = int(target.attrs["num-cores"])
    return normalizations.marked(reductions.marked(lowered, cores), cores)


def _lower_for_gpu(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    """Without what a processor's caches and vectors ask for."""
    with target:
        return _whole(tvm.transform.Sequential([*_simplified(), *_fused({})])(mod))


def _whole(mod: tvm.IRModule) -> tvm.IRModule:
    """Raises ValueError for an operator that has no program: TVM leaves it as it is, and cannot compile it."""
    operators = (call for call in _calls(mod) if isinstance(call.op, tvm.ir.Op) and call.op.name.startswith(COMPUTING))
    if left := {f"{call.op.name} of {call.args[0].ty}" for call in operators}:
        raise ValueError(f"TVM has no program for {', '.join(sorted(left))}")
    return mod


def _simplified() -> list[tvm.transform.Pass]:
    return [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        constants.Fold(),
        clips.Clip(),
    ]


def _fused(legalized: dict[str, Any]) -> list[tvm.transform.Pass]:
    """Operators as TensorIR functions, the `legalized` in ways of our own, and neighbours as one."""
    return [
        relax.transform.LegalizeOps(legalized),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]


def last_line(error: Exception) -> str:
    """Of what TVM says, the line that names the reason, and nothing of its list of operators; else the kind of error."""
    lines = [line.strip() for line in str(error).partition("ir.Op(")[0].splitlines()]
    said = next((line[:300] for line in reversed(lines) if any(map(str.isalnum, line))), "")
    return said if said and not isinstance(error, KeyError) else f"{type(error).__name__} {said}".strip()


def calls(mod: tvm.IRModule) -> list[str]:
    """Names of the TensorIR functions in the order in which the network calls them, repetitions included."""
    to_programs = tvm.ir.Op.get("relax.call_tir")
    return [call.args[0].name_hint for call in _calls(mod) if call.op.same_as(to_programs)]


def _calls(mod: tvm.IRModule) -> list[relax.Call]:
    found: list[relax.Call] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call):
            found.append(expr)

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return found
