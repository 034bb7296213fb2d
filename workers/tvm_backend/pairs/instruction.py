"""a0 b0 + a1 b1 as an operator of TVM's programs, which becomes PMADDWD where a target has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import tvm
from tvm import ir, tirx
from tvm.sym import Analyzer
from tvm_ffi import structural_walk

from workers.tvm_backend.hardware import pair_widths
from workers.tvm_backend.layout_free import blocks

PAIRED = "tirx.product_of_pairs"
"""(first, second, weights) -> first * low + second * high: int16, int16, and uint32 that holds two int16; an int32."""

INSTRUCTIONS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
"""By sums at a time. LLVM adds with the same instruction where there is one that does (VNNI)."""


def product_of_pairs(first: Any, second: Any, weights: Any) -> Any:
    """One sum of two products. `first` and `second` lie one behind the other, so that both are read at once."""
    return tirx.call_intrin("int32", PAIRED, first, second, weights)


def uncounted(program: tirx.PrimFunc) -> int:
    """FLOP that TVM's estimate leaves out: of two products and two sums it counts the last."""
    return sum(
        3 * math.prod(int(one.dom.extent) for one in block.iter_vars) for block in blocks(program) if _multiplies(block)
    )


def _multiplies(block: Any) -> bool:
    calls: list[Any] = []
    structural_walk(block.body, [(ir.Call, calls.append)])
    return any(isinstance(call.op, ir.Op) and call.op.name == PAIRED for call in calls)


def _lowered(call: Any) -> Any:
    """Of as many lanes as TVM's vectors have: in instructions of the widest that fit, and number by number."""
    first, second, weights = call.args
    data = _together(first, second)
    lanes = tvm.DataType(call.ty.dtype).lanes
    widths = _widths(tvm.target.Target.current(allow_none=True))
    parts: list[Any] = []
    at = 0
    while at < lanes:
        width = next((width for width in widths if width <= lanes - at), 1)
        multiply = _at_once if width > 1 else _one
        parts.append(multiply(_part(data, at, width), _part(weights, at, width), width))
        at += width
    return parts[0] if len(parts) == 1 else tirx.Shuffle(parts, _numbers(0, lanes))


@lru_cache(maxsize=4)
def _widths(target: tvm.target.Target | None) -> Sequence[int]:
    return pair_widths(target) if target is not None else ()


def _at_once(data: Any, weights: Any, width: int) -> Any:
    numbers = f"int16x{2 * width}"
    return tirx.call_llvm_pure_intrin(
        f"int32x{width}", INSTRUCTIONS[width], tirx.reinterpret(numbers, data), tirx.reinterpret(numbers, weights)
    )


def _one(data: Any, weights: Any, _: int) -> Any:
    low, high = (
        [tirx.shift_right(half, 16) for half in (tirx.shift_left(signed, 16), signed)]
        for signed in (tirx.reinterpret("int32", pair) for pair in (data, weights))
    )
    return low[0] * high[0] + low[1] * high[1]


def _together(first: Any, second: Any) -> Any:
    """Both numbers in 32 bits. Read at once, where one lies behind the other: LLVM does so too, but forgets whose memory it
    is, and then writes every accumulator after every step."""
    if isinstance(first, tirx.Broadcast):
        return tirx.Broadcast(_together(first.value, second.value), first.lanes)
    if isinstance(first, ir.TensorLoad) and isinstance(second, ir.TensorLoad) and first.source.same_as(second.source):
        *outer, index = first.indices
        *others, following = second.indices
        if not outer and not others and Analyzer().can_prove_equal(following - index, 1):
            return tirx.reinterpret("uint32", tirx.BufferLoad(first.source, [tirx.Ramp(index, 1, 2)]))
    low, high = (_widened(number) for number in (first, second))
    return low | (high << tirx.const(16, "uint32"))


def _widened(number: Any) -> Any:
    return tirx.Cast("uint32", tirx.reinterpret("uint16", number))


def _part(vector: Any, at: int, width: int) -> Any:
    """Lanes of a vector."""
    if tvm.DataType(vector.ty.dtype).lanes == width:
        return vector
    if isinstance(vector, tirx.Broadcast):
        return vector.value if width == 1 else tirx.Broadcast(vector.value, width)
    return tirx.Shuffle([vector], _numbers(at, width))


def _numbers(start: int, count: int) -> list[Any]:
    return [tirx.IntImm("int32", number) for number in range(start, start + count)]


def _register() -> None:
    if PAIRED in ir.Op.list_op_names():
        return
    ir._ffi_api.RegisterOp(PAIRED, "The sum of two products of integers of 16 bits.")
    ir.register_op_attr(PAIRED, "TCallEffectKind", tirx.CallEffectKind.Pure.value)
    ir.register_op_attr(PAIRED, "TVectorizable", True)
    ir.register_op_attr(PAIRED, "TScriptPrinterName", "product_of_pairs")
    tirx.register_intrin_lowering(PAIRED, target="llvm", f=_lowered)


_register()
