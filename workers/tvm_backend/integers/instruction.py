"""Sums of two or four products as operators of TVM's programs, which become one instruction where a target has it.

`a[i] = added(a[i], product_of_fours(d0, d1, d2, d3, w))`: int32 sums; numbers of a grouping's type; a uint32 of its weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from operator import add, or_
from typing import Any

import tvm
from tvm import ir, te, tirx
from tvm.sym import Analyzer
from tvm_ffi import structural_walk

from workers.tvm_backend.blocks import blocks
from workers.tvm_backend.hardware import product_widths
from workers.tvm_backend.integers.grouping import GROUPINGS, Grouping

ADDED = "tirx.added"
"""(sum, products) -> sum. Not TVM's own sum: VPDPBUSD adds to what was there, and LLVM takes nothing else for it."""
PRODUCTS = {f"tirx.product_of_{grouping.name}": grouping for grouping in GROUPINGS}

total: Callable[..., Any] = te.comm_reducer(
    lambda so_far, products: tirx.call_intrin("int32", ADDED, so_far, products),
    lambda dtype: tirx.const(0, dtype),
    name="total",
)
"""The sum of products over axes of a tensor expression."""


def product(grouping: Grouping, numbers: Sequence[Any], weights: Any) -> Any:
    """One sum of products. `numbers` lie one behind the other, so that they are read at once."""
    return tirx.call_intrin("int32", f"tirx.product_of_{grouping.name}", *numbers, weights)


def uncounted(program: tirx.PrimFunc) -> int:
    """FLOP that TVM's estimate leaves out: of products and their sums it counts none."""
    return sum(
        2 * count * math.prod(int(one.dom.extent) for one in block.iter_vars)
        for block in blocks(program)
        for count in _counts(block)
    )


def at_once(program: tirx.PrimFunc) -> int:
    """Products that the program's instructions add up at once; 1 of float32."""
    return max((count for block in blocks(program) for count in _counts(block)), default=1)


def _counts(block: Any) -> list[int]:
    """Of the products of a block."""
    calls: list[Any] = []
    structural_walk(block.body, [(ir.Call, calls.append)])
    return [grouping.count for call in calls if (grouping := _grouping(call))]


def _grouping(call: Any) -> Grouping | None:
    if not isinstance(call, ir.Call) or not isinstance(call.op, ir.Op):
        return None
    return PRODUCTS.get(call.op.name)


def _added(call: Any) -> Any:
    """A sum, and what is added. As many lanes as TVM's vectors have, in instructions of the widest that fit, and number by
    number."""
    so_far, products = call.args
    grouping = _grouping(products)
    if grouping is None:
        return so_far + products
    *numbers, weights = products.args
    return _multiplied(grouping, so_far, _together(grouping, numbers), weights)


def _alone(grouping: Grouping, call: Any) -> Any:
    """Of products that are added to nothing, or broadcast before they are."""
    *numbers, weights = call.args
    lanes = tvm.DataType(call.ty.dtype).lanes
    zero = tirx.const(0, "int32")
    nothing = zero if lanes == 1 else tirx.Broadcast(zero, lanes)
    return _multiplied(grouping, nothing, _together(grouping, numbers), weights)


def _multiplied(grouping: Grouping, so_far: Any, data: Any, weights: Any) -> Any:
    lanes = tvm.DataType(so_far.ty.dtype).lanes
    widths = _widths(tvm.target.Target.current(allow_none=True), grouping.count)
    parts: list[Any] = []
    at = 0
    while at < lanes:
        width = next((width for width in widths if width <= lanes - at), 1)
        multiply = _at_once if width > 1 else _one
        sums, read, factors = (_part(vector, at, width) for vector in (so_far, data, weights))
        parts.append(multiply(grouping, sums, read, factors, width))
        at += width
    return parts[0] if len(parts) == 1 else tirx.Shuffle(parts, _numbers(0, lanes))


@lru_cache(maxsize=8)
def _widths(target: tvm.target.Target | None, count: int) -> Sequence[int]:
    return product_widths(target, count) if target is not None else ()


def _at_once(grouping: Grouping, so_far: Any, data: Any, weights: Any, width: int) -> Any:
    factors = [
        tirx.reinterpret(f"{dtype}x{grouping.count * width}", vector)
        for dtype, vector in ((grouping.dtype, data), (f"int{grouping.bits}", weights))
    ]
    call = partial(tirx.call_llvm_pure_intrin, f"int32x{width}", grouping.instructions[width])
    return call(so_far, *factors) if grouping.adds else so_far + call(*factors)


def _one(grouping: Grouping, so_far: Any, data: Any, weights: Any, _: int) -> Any:
    return reduce(
        add,
        (
            _number(data, grouping.bits, place, grouping.signed) * _number(weights, grouping.bits, place, True)
            for place in range(grouping.count)
        ),
        so_far,
    )


def _number(word: Any, bits: int, place: int, signed: bool) -> Any:
    """The one at a place of 32 bits."""
    whole = tirx.Cast("int32", tirx.shift_right(word, tirx.const(bits * place, "uint32")) & _ones(bits))
    sign = tirx.const(1 << (bits - 1), "int32")
    return (whole ^ sign) - sign if signed else whole


def _together(grouping: Grouping, numbers: Sequence[Any]) -> Any:
    """The numbers in 32 bits. Read at once, where they lie one behind the other: LLVM does so too, but forgets whose memory
    it is, and then writes every accumulator after every step."""
    first = numbers[0]
    if isinstance(first, tirx.Broadcast):
        return tirx.Broadcast(_together(grouping, [number.value for number in numbers]), first.lanes)
    if _lie_together(numbers):
        (index,) = first.indices
        return tirx.reinterpret("uint32", tirx.BufferLoad(first.source, [tirx.Ramp(index, 1, grouping.count)]))
    return reduce(
        or_,
        (
            _widened(number, grouping.bits) << tirx.const(grouping.bits * place, "uint32")
            for place, number in enumerate(numbers)
        ),
    )


def _lie_together(numbers: Sequence[Any]) -> bool:
    first = numbers[0]
    if not all(isinstance(one, ir.TensorLoad) and one.source.same_as(first.source) for one in numbers):
        return False
    if any(len(one.indices) != 1 for one in numbers):
        return False
    prove = Analyzer().can_prove_equal
    return all(prove(one.indices[0] - first.indices[0], place) for place, one in enumerate(numbers))


def _widened(number: Any, bits: int) -> Any:
    """Its bits. Not by way of a `reinterpret`: of a zero, as those around a picture are, LLVM's code generator has none."""
    return tirx.Cast("uint32", number) & _ones(bits)


def _ones(bits: int) -> Any:
    return tirx.const((1 << bits) - 1, "uint32")


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
    lowered = {ADDED: _added, **{name: partial(_alone, grouping) for name, grouping in PRODUCTS.items()}}
    for name, lowering in lowered.items():
        if name in ir.Op.list_op_names():
            continue
        ir._ffi_api.RegisterOp(name, "Sums of products of whole numbers.")
        ir.register_op_attr(name, "TCallEffectKind", tirx.CallEffectKind.Pure.value)
        ir.register_op_attr(name, "TVectorizable", True)
        ir.register_op_attr(name, "TScriptPrinterName", name.removeprefix("tirx."))
        tirx.register_intrin_lowering(name, target="llvm", f=lowering)


_register()
