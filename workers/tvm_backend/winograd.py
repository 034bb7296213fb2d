"""3 x 3 convolutions by Winograd's minimal filtering (Lavin and Gray 2016, section 4).

F(m x m, 3 x 3) computes a tile of m x m outputs from m + 2 squared inputs with (m + 2)^2 products instead of 9 m^2: the
convolution becomes a transform of the input, one matrix product for each of the (m + 2)^2 places in a tile, and a
transform of the product. The three are operators of their own, so each is tuned; what follows the convolution (bias, sum,
Relu) is fused into the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax, te
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.s_tir import Schedule
from tvm.tirx import Select, all, const, if_then_else

KERNEL = 3
OPAQUE, FUSABLE = 8, 4  # TVM's kinds of operators: fused with nothing; with elementwise ones after it

KEPT = {"meta_schedule.inline_rule": "disable"}

CACHED = 0.5
"""Of the time that a byte from memory takes: what lies between two operators is in a cache, mostly."""
WORTH = 0.85
"""What the transformed convolution may cost of the plain one: the estimate is a rule of the machine, no measurement."""


@dataclass(frozen=True, eq=False)
class Filtering:
    """F(m x m, 3 x 3) for tiles of m x m outputs: Y = A' [(G g G') * (B' d B)] A (equation 8)."""

    outputs: int
    data: NDArray[np.float64]
    """B', (m + 2, m + 2)."""
    kernel: NDArray[np.float64]
    """G, (m + 2, 3)."""
    product: NDArray[np.float64]
    """A', (m, m + 2)."""

    @property
    def inputs(self) -> int:
        """Width of a tile of the input."""
        return self.outputs + KERNEL - 1


F2 = Filtering(
    outputs=2,
    data=np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float64),
    kernel=np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.float64) / 2,
    product=np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float64),
)
F4 = Filtering(
    outputs=4,
    data=np.array(
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        np.float64,
    ),
    kernel=np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]], np.float64) / 24,
    product=np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], np.float64),
)


@dataclass(frozen=True)
class Convolution:
    """A 3 x 3 convolution with stride 1, in NHWC."""

    batch: int
    height: int
    width: int
    channels: int
    filters: int
    padding: tuple[int, int, int, int]
    """Top, left, bottom, right."""

    @property
    def outputs(self) -> tuple[int, int]:
        """Height and width of the output."""
        top, left, bottom, right = self.padding
        return self.height + top + bottom - KERNEL + 1, self.width + left + right - KERNEL + 1

    def tiles(self, filtering: Filtering) -> tuple[int, int]:
        """Tiles of the output in height and width; the last ones may reach over its edge."""
        height, width = self.outputs
        return math.ceil(height / filtering.outputs), math.ceil(width / filtering.outputs)

    def plain_cost(self, balance: float) -> float:
        """Of the plain convolution, in FLOP: its own, and `balance` for each byte of its weights, which come from memory."""
        weights = KERNEL**2 * self.channels * self.filters
        return 2.0 * weights * self.batch * math.prod(self.outputs) + balance * 4 * weights

    def cost(self, filtering: Filtering, balance: float) -> float:
        """The same of the transformed one, whose tiles are written and read twice."""
        places, tiles = filtering.inputs**2, self.batch * math.prod(self.tiles(filtering))
        weights = places * self.channels * self.filters
        moved = 2 * 4 * places * tiles * (self.channels + self.filters)
        return 2.0 * weights * tiles + balance * (CACHED * moved + 4 * weights)


def chosen(convolution: Convolution, lanes: int, balance: float) -> Filtering | None:
    """The cheapest filtering where it is worth it; None for the plain convolution.

    `balance` is rounded to a power of two: a target measured again must come to the same operators. Channels must be whole
    vectors: the transforms work on one vector of channels of a tile at a time.
    """
    if convolution.channels % lanes or convolution.filters % lanes:
        return None
    rounded = 2.0 ** round(math.log2(balance))
    best = min((F2, F4), key=lambda filtering: convolution.cost(filtering, rounded))
    return best if convolution.cost(best, rounded) <= WORTH * convolution.plain_cost(rounded) else None


def transformed(mod: tvm.IRModule, lanes: int, balance: float) -> tuple[tvm.IRModule, int]:
    """`mod`, in NHWC and before it is lowered, with the convolutions that are worth it rewritten; and how many were."""
    rewriter = _Rewriter(mod, lanes, balance)
    for name, function in mod.functions_items():
        if isinstance(function, relax.Function):
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
    return rewriter.builder_.finalize(), rewriter.count


@mutator
class _Rewriter(PyExprMutator):  # type: ignore[misc]
    def __init__(self, mod: tvm.IRModule, lanes: int, balance: float) -> None:
        super().__init__(mod)
        self._lanes, self._balance = lanes, balance
        self.count = 0

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        if not isinstance(call.op, tvm.ir.Op) or call.op.name != "relax.nn.conv2d":
            return call
        weights = self._constant(call.args[1])
        convolution = _convolution(call)
        filtering = convolution and chosen(convolution, self._lanes, self._balance)
        if convolution is None or filtering is None or weights is None:
            return call
        self.count += 1
        fixed = {"conv": convolution, "filtering": filtering, "lanes": self._lanes}
        data = self.builder_.emit_te(
            partial(_input_transform, **fixed),
            call.args[0],
            primfunc_name_hint="winograd_input",
            primfunc_attrs={"op_pattern": OPAQUE},
        )
        product = self.builder_.emit(relax.op.matmul(data, relax.const(weights_transformed(weights, filtering))))
        return self.builder_.call_te(
            partial(_output_transform, **fixed),
            product,
            primfunc_name_hint="winograd_output",
            primfunc_attrs={"op_pattern": FUSABLE},
        )

    def _constant(self, expr: relax.Expr) -> NDArray[np.float32] | None:
        """The value of a constant that the layout conversion may have turned, HWIO."""
        axes: Sequence[int] | None = None
        if isinstance(expr, relax.Var):
            expr = self.lookup_binding(expr)
        if isinstance(expr, relax.Call) and expr.op == tvm.ir.Op.get("relax.permute_dims"):
            axes = [int(axis) for axis in expr.attrs.axes]
            expr = expr.args[0]
            if isinstance(expr, relax.Var):
                expr = self.lookup_binding(expr)
        if not isinstance(expr, tvm.ir.GenericConst):
            return None
        value = expr.value.numpy()
        return value.transpose(axes) if axes is not None else value


def _convolution(call: relax.Call) -> Convolution | None:
    """What a call computes when it can be transformed: float32, NHWC, 3 x 3, stride and dilation 1, one group."""
    attributes, (data, kernel) = call.attrs, (argument.ty for argument in call.args)
    fits = (
        str(attributes.data_layout) == "NHWC"
        and str(attributes.kernel_layout) == "HWIO"
        and [int(n) for n in (*attributes.strides, *attributes.dilation, attributes.groups)] == [1] * 5
        and data.dtype.dtype == kernel.dtype.dtype == "float32"
        and isinstance(data.shape, relax.ShapeExpr)
        and isinstance(kernel.shape, relax.ShapeExpr)
    )
    if not fits:
        return None
    (batch, height, width, channels), (high, wide, _, filters) = (
        tuple(int(n) for n in shape.values) for shape in (data.shape, kernel.shape)
    )
    if (high, wide) != (KERNEL, KERNEL):
        return None
    top, left, bottom, right = (int(n) for n in attributes.padding)
    return Convolution(batch, height, width, channels, filters, (top, left, bottom, right))


def weights_transformed(weights: NDArray[np.float32], filtering: Filtering) -> NDArray[np.float32]:
    """G g G' of (3, 3, channels, filters), as (places, channels, filters); computed in double."""
    kernel = filtering.kernel
    found = np.einsum("xr,rsio,ys->xyio", kernel, weights.astype(np.float64), kernel, optimize=True)
    return found.reshape(-1, *weights.shape[2:]).astype(np.float32)


def _input_transform(data: te.Tensor, conv: Convolution, filtering: Filtering, lanes: int) -> te.Tensor:
    """B' d B of every tile: (batch, height, width, channels) to (places, tiles, channels)."""
    width, step = filtering.inputs, filtering.outputs
    high, wide = conv.tiles(filtering)
    top, left, _, _ = conv.padding
    shape = (width, width, conv.batch * high * wide, conv.channels)

    def padded(r: Any, s: Any, tile: Any, channel: Any) -> Any:
        y = tile // wide % high * step + r - top
        x = tile % wide * step + s - left
        inside = all(y >= 0, y < conv.height, x >= 0, x < conv.width)
        return if_then_else(inside, data[tile // (high * wide), y, x, channel], const(0.0, "float32"))

    tiles = te.compute(shape, padded, name="tiles", attrs=KEPT)
    rows = te.compute(
        shape,
        lambda r, s, tile, channel: _row(filtering.data, r, lambda k: tiles[k, s, tile, channel]),
        name="rows",
        attrs=KEPT,
    )
    return te.compute(
        (width * width, *shape[2:]),
        lambda place, tile, channel: _row(
            filtering.data, place % width, lambda k: rows[place // width, k, tile, channel]
        ),
        name="winograd_input",
        attrs={"schedule_rule": "winograd_input", "winograd": [width, lanes]},
    )


def _output_transform(product: te.Tensor, conv: Convolution, filtering: Filtering, lanes: int) -> te.Tensor:
    """A' m A of every tile: (places, tiles, filters) to (batch, height, width, filters)."""
    width, step = filtering.inputs, filtering.outputs
    high, wide = conv.tiles(filtering)
    rows = te.compute(
        (step, width, conv.batch * high * wide, conv.filters),
        lambda i, s, tile, channel: _row(filtering.product, i, lambda k: product[k * width + s, tile, channel]),
        name="rows",
        attrs=KEPT,
    )

    def placed(image: Any, y: Any, x: Any, channel: Any) -> Any:
        tile = (image * high + y // step) * wide + x // step
        return _row(filtering.product, x % step, lambda k: rows[y % step, k, tile, channel])

    return te.compute(
        (conv.batch, *conv.outputs, conv.filters),
        placed,
        name="winograd_output",
        attrs={"schedule_rule": "winograd_output", "winograd": [step, lanes]},
    )


def _row(matrix: NDArray[np.float64], row: Any, term: Callable[[int], Any]) -> Any:
    """The product of one row of `matrix` with terms; `row` is a number once its loop is unrolled."""
    products = [_combined(coefficients, term) for coefficients in matrix]
    found = products[-1]
    for number in range(len(products) - 2, -1, -1):
        found = Select(row == number, products[number], found)
    return found


def _combined(coefficients: NDArray[np.float64], term: Callable[[int], Any]) -> Any:
    total: Any = None
    for place, coefficient in enumerate(coefficients):
        if not coefficient:
            continue
        value = term(place)
        if total is None:
            total = value if coefficient == 1 else const(float(coefficient), "float32") * value
        elif abs(coefficient) == 1:
            total = total + value if coefficient > 0 else total - value
        else:
            total = total + const(float(coefficient), "float32") * value
    return total


@tvm.register_global_func("s_tir.meta_schedule.cpu.winograd_input", override=True)
def _schedule_input(schedule: Schedule, block: Any) -> list[Schedule]:
    """A vector of channels of one tile at a time: its inputs, its rows and its places stay in registers and cache."""
    width, lanes = _numbers(schedule, block)
    place, tile, channel = schedule.get_loops(block)
    row, column = schedule.split(place, [width, width])
    outer, vector = schedule.split(channel, [None, lanes])
    schedule.reorder(tile, outer, row, column, vector)
    (rows,) = schedule.get_producers(block)
    (tiles,) = schedule.get_producers(rows)
    for producer in (rows, tiles):
        schedule.compute_at(producer, outer)
        _unrolled(schedule, schedule.get_loops(producer)[2:])
    _unrolled(schedule, [row, column, vector])
    schedule.parallel(tile)
    return [schedule]


@tvm.register_global_func("s_tir.meta_schedule.cpu.winograd_output", override=True)
def _schedule_output(schedule: Schedule, block: Any) -> list[Schedule]:
    """A vector of filters of one tile at a time, with what follows the convolution."""
    step, lanes = _numbers(schedule, block)
    while consumers := schedule.get_consumers(block):
        if len(consumers) == 1:
            schedule.reverse_compute_inline(consumers[0])
        else:  # x * sigmoid(x): what is read again first becomes part of what reads it
            schedule.compute_inline(next(one for one in consumers if schedule.get_consumers(one)))
    image, y, x, channel = schedule.get_loops(block)
    (y, below), (x, beside), (outer, vector) = (
        schedule.split(loop, [None, size]) for loop, size in ((y, step), (x, step), (channel, lanes))
    )
    schedule.reorder(image, y, x, outer, below, beside, vector)
    (rows,) = [
        producer for producer in schedule.get_producers(block) if schedule.get(producer).name_hint.startswith("rows")
    ]
    schedule.compute_at(rows, outer)
    _unrolled(schedule, schedule.get_loops(rows)[4:])
    _unrolled(schedule, [below, beside, vector])
    schedule.parallel(schedule.fuse(image, y, x))
    return [schedule]


def _numbers(schedule: Schedule, block: Any) -> tuple[int, int]:
    first, second = (int(n) for n in schedule.get(block).annotations["winograd"])
    schedule.unannotate(block, "winograd")
    return first, second


def _unrolled(schedule: Schedule, loops: Sequence[Any]) -> None:
    """The last loop as a vector, the others unrolled: their indices choose rows of the matrices."""
    for loop in loops[:-1]:
        schedule.unroll(loop)
    schedule.vectorize(loops[-1])
