"""Which operators of a network are rewritten over groups of whole numbers, and how what they read is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.tvm_backend.integers.grouping import GROUPINGS, Grouping, Span
from workers.tvm_backend.integers.spans import Bound, Known, whole_span
from workers.tvm_backend.integers.sums import Convolution
from workers.tvm_backend.mutation import constant, is_call, is_concatenation, static_shape

SpanOf = Callable[[Any], Span | None]
"""Between which whole numbers a tensor lies; None where it may hold others."""


@dataclass(frozen=True)
class Form:
    """How a tensor is kept whose numbers are whole and lie in a span. With a `zero`, found only when the network runs, it is
    those numbers less the zero."""

    grouping: Grouping
    data: Span
    zero: relax.Expr | None = None

    @property
    def offset(self) -> int:
        """What is taken off the numbers to keep them."""
        offset = self.grouping.offset(self.data)
        assert offset is not None
        return int(offset)

    def alike(self, other: Form) -> bool:
        """Whether numbers are kept the same."""
        return self.zero is other.zero is None and (self.grouping, self.offset) == (other.grouping, other.offset)


@dataclass(frozen=True)
class Factors:
    """Of an operator that is rewritten: what it reads, and its constant (..., channels, filters)."""

    read: Form
    weights: NDArray[np.float32]


@dataclass(frozen=True)
class Found:
    """`products` are the calls that are rewritten; `forms` say by variable how the quickest of those that read it wants it, or
    how it is shortest where only convolutions in groups and poolings do."""

    products: dict[Any, Factors] = field(default_factory=dict)
    forms: dict[Any, Form] = field(default_factory=dict)

    def find(self, function: relax.Function, among: list[Grouping]) -> None:
        """Adds those of a function, in groupings of `among`."""
        values = dict(relax.analysis.get_var2val(function).items())

        def bound(expr: Any) -> Any:
            return values[expr] if isinstance(expr, relax.Var) and expr in values else expr

        span_of = _spans(values, bound)
        for call in values.values():
            if factors := _factors(call, bound, span_of, among):
                self.products[call] = factors
                had = self.forms.setdefault(call.args[0], factors.read)
                if GROUPINGS.index(factors.read.grouping) < GROUPINGS.index(had.grouping):
                    self.forms[call.args[0]] = factors.read
        for call in values.values():
            if (in_groups(call) or is_pooling(call)) and call.args[0] not in self.forms:
                if form := _shortest(call.args[0], span_of):
                    self.forms[call.args[0]] = form
        self._hand_on(values)

    def _hand_on(self, values: dict[Any, Any]) -> None:
        """A concatenation's form is its parts', which may be concatenations."""
        for var, call in reversed(values.items()):
            form = self.forms.get(var) if is_concatenation(call) else None
            if form is None or form.zero is not None:
                continue
            parts = list(call.args[0])
            if all(part in values and self.forms.get(part, form).alike(form) for part in parts):
                self.forms.update((part, form) for part in parts if part not in self.forms)


def in_groups(call: Any) -> Convolution | None:
    """The convolution in groups that this is, with the channels last."""
    convolution = Convolution.of(call)
    return convolution if convolution is not None and convolution.groups > 1 else None


def is_pooling(call: Any) -> bool:
    return is_call(call, "relax.nn.max_pool2d")


def _spans(values: dict[Any, Any], bound: Bound) -> SpanOf:
    """Of a function's variables, in whose order each asks for the one before it alone: a thousand sums in a row would be two
    thousand calls deep."""
    known: Known = {}
    for var, value in values.items():
        if _reads_computed(value):
            whole_span(var, bound, known)
    return partial(whole_span, bound=bound, known=known)


def _reads_computed(call: Any) -> bool:
    """Whether an expression reads more than constants, which are large and mostly no whole numbers."""
    return isinstance(call, relax.Call) and any(isinstance(read, relax.Var | relax.Tuple) for read in call.args)


def _shortest(read: Any, span_of: SpanOf) -> Form | None:
    if not isinstance(read, relax.Var) or str(read.ty.dtype.dtype) != "float32":
        return None  # stored integers have a type of their own, which others may read
    span = span_of(read)
    return next((Form(one, span) for one in GROUPINGS if one.offset(span) is not None), None) if span else None


def _factors(call: Any, bound: Bound, span_of: SpanOf, among: list[Grouping]) -> Factors | None:
    """Of an operator that is rewritten; else None."""
    convolution = Convolution.of(call)
    if convolution.groups > 1 if convolution else not is_call(call, "relax.matmul"):
        return None
    span = span_of(call.args[0])
    if span is None or not isinstance(call.args[0], relax.Var) or static_shape(call.args[0]) is None:
        return None  # before its weights are copied: all of a network in float32 would be
    weights = constant(call.args[1], bound)
    # One matrix only: in a batch of them each would have groups of its own.
    if (
        weights is None
        or weights.ndim != (2 + len(convolution.strides) if convolution else 2)
        or weights.dtype != np.float32
        or not np.array_equal(weights, np.rint(weights))
    ):
        return None
    # Around a convolution's input such a zero cannot lie: what is padded with is a constant.
    moving = None if convolution else _less_a_zero(call.args[0], bound, span_of)
    for one in among:
        if one.takes(weights, span):
            return Factors(Form(one, span), weights)
        if moving is not None and one.offset(moving.data) == 0 and one.takes(weights, moving.data, moving.zero):
            return Factors(Form(one, moving.data, moving.expr), weights)
    return None


class _LessAZero(NamedTuple):
    """Whole numbers between `data` less one between `zero`, which `expr` tells."""

    data: Span
    zero: Span
    expr: relax.Expr


def _less_a_zero(expr: Any, bound: Bound, span_of: SpanOf) -> _LessAZero | None:
    """As networks have it that are quantised while they run."""
    expr = bound(expr)
    if not is_call(expr, "relax.subtract") or static_shape(expr.args[1]) not in ((), (1,)):
        return None
    data, zero = (span_of(term) for term in expr.args)
    return _LessAZero(data, zero, expr.args[1]) if data and zero else None
