"""The shape of one tensor: the words that checking and inference share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from onnx import ValueInfoProto

Dimension = int | str | None
"""A number, the name of a dynamic dimension, or None where nothing is known."""

SMALL = 1024
"""Weights up to so many elements are kept for shape inference: they may be shapes, axes or pads."""


@dataclass(frozen=True)
class TensorShape:
    """Element type (`onnx.TensorProto` number) and dimensions; `dims` is None where the rank is unknown."""

    dtype: int
    dims: tuple[Dimension, ...] | None

    @property
    def elements(self) -> int:
        """Number of elements, unknown dimensions counted as one."""
        return prod(d for d in self.dims or () if isinstance(d, int))

    @property
    def static(self) -> tuple[int, ...] | None:
        """The dimensions when all of them are known numbers, else None."""
        known = tuple(d for d in self.dims or () if isinstance(d, int))
        return known if self.dims is not None and len(known) == len(self.dims) else None


def sizes_of(shapes: Mapping[str, TensorShape], name: str) -> tuple[int, ...]:
    """The dimensions of a tensor; none where they are not all known numbers."""
    return (shapes[name].static if name in shapes else None) or ()


def shape_of(value: ValueInfoProto) -> TensorShape:
    """What a value info declares; older exporters write -1 for a size that is given later."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return TensorShape(tensor.elem_type, None)
    dims = (
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else (d.dim_param or None) for d in tensor.shape.dim
    )
    return TensorShape(tensor.elem_type, tuple(dims))
