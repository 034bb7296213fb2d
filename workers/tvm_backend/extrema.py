"""The larger and the lesser of tensors, two by two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tvm
from tvm.relax.frontend.onnx import onnx_frontend


@contextmanager
def two_by_two() -> Iterator[None]:
    """TVM's import of Max and Min copies its operands into one tensor and reduces that, through which no layout passes. What it
    does where sizes are not known is the operator itself."""
    kinds = (onnx_frontend.Max, onnx_frontend.Min)
    for kind in kinds:
        kind._impl_v1 = classmethod(_folded)
    try:
        yield
    finally:
        for kind in kinds:
            del kind._impl_v1  # what they inherit is back


def _folded(kind: Any, builder: Any, inputs: Any, attributes: Any, parameters: Any) -> Any:
    if all(isinstance(one, tvm.ir.GenericConst) for one in inputs):
        return onnx_frontend.MultiInputBase._impl_v1.__func__(kind, builder, inputs, attributes, parameters)
    return kind._impl_dynamic(builder, inputs)
