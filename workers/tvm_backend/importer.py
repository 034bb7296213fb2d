"""From a cleaned ONNX graph to the TensorIR functions that are tuned, on a CPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx, onnx_frontend

from workers.tvm_backend import winograd
from workers.tvm_backend.hardware import vector_lanes

LAYOUTS = {"NHWC": {"relax.nn.conv2d": ["NHWC", "HWIO"]}}


class ImportFailed(Exception):
    """TVM cannot import the network; the text names the reason for the user."""


@dataclass(frozen=True)
class Imported:
    """A network as fused TensorIR functions under one main function. `notes` are plain sentences for the run's log."""

    mod: tvm.IRModule
    layout: str
    notes: tuple[str, ...]


def unsupported(operators: Iterable[str]) -> list[str]:
    """Those of the ONNX operator types that TVM's frontend has no converter for, sorted."""
    known = {*onnx_frontend._get_convert_map(), "If", "Constant"}
    return sorted(set(operators) - known)


def import_network(
    model: onnx.ModelProto,
    shapes: dict[str, list[int]],
    target: tvm.target.Target,
    layout: str = "auto",
    balance: float | None = None,
) -> Imported:
    """Imports with static `shapes`, convolutions in NHWC where the conversion holds (layout "auto" or "NHWC"), else NCHW.

    With the machine's `balance`, FLOP that it does while a byte comes from memory, convolutions are transformed where that
    makes them cheaper. Raises ImportFailed. What holds is what converts and lowers; that it also computes the same is for
    the verification.
    """
    mod = _frontend(model, shapes)
    notes: list[str] = []
    if any(node.op_type in {"Round", "DynamicQuantizeLinear"} for node in model.graph.node):
        balance = None  # a quantised network's sums are whole numbers, and the transforms would blur them
    convolutions = any(node.op_type == "Conv" for node in model.graph.node)
    if layout in {"auto", "NHWC"} and convolutions:
        try:
            return _imported_nhwc(mod, target, balance)
        except Exception as error:  # TVM raises whatever its C++ throws
            notes.append(f"layout NHWC does not hold here ({_last_line(error)}): the network stays in NCHW")
    return Imported(_lower(mod, target), "NCHW" if convolutions else "none", tuple(notes))


def _imported_nhwc(mod: tvm.IRModule, target: tvm.target.Target, balance: float | None) -> Imported:
    converted, count = relax.transform.ConvertLayout(LAYOUTS["NHWC"])(mod), 0
    if balance is not None:
        converted, count = winograd.transformed(converted, vector_lanes(target), balance)
    notes = (f"convolutions computed by Winograd's minimal filtering: {count}",) if count else ()
    return Imported(_lower(converted, target), "NHWC", notes)


def _frontend(model: onnx.ModelProto, shapes: dict[str, list[int]]) -> tvm.IRModule:
    try:
        return from_onnx(model, shape_dict=shapes, keep_params_in_input=False)
    except Exception as error:
        raise ImportFailed(f"TVM cannot import this network: {_last_line(error)}") from error


def _lower(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    passes = [
        # exp, erf and tanh as polynomials, exact to some units in the last place: the C library's work number by number.
        relax.transform.FastMathTransform(),
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.AttachAttrLayoutFreeBuffers(),
    ]
    with target:
        return tvm.transform.Sequential(passes)(mod)


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]


def calls(mod: tvm.IRModule) -> list[str]:
    """Names of the TensorIR functions in the order in which the network calls them, repetitions included."""
    names: list[str] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call) and expr.op.same_as(tvm.ir.Op.get("relax.call_tir")):
            names.append(expr.args[0].name_hint)

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return names
