"""What TVM's own tuning is given to run its programs on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.tvm

WANTED = [("TENSOR", "float32", (64,)), ("TENSOR", "int64", (64,)), ("TENSOR", "int32", (4, 16))]


@pytest.fixture(scope="module")
def cpu() -> Any:
    from workers.tvm_backend import runtime

    runtime.load()
    import tvm

    return tvm.cpu()


def test_integers_are_zeros_of_their_type_and_shape_and_nothing_else_is(cpu: Any) -> None:
    from workers.benchmarks.stock_runner import arguments

    given = arguments(cpu, WANTED, 2)
    assert len(given) == 2
    for arrays in given:
        assert [(str(array.dtype), tuple(array.shape)) for array in arrays] == [described[1:] for described in WANTED]
        assert [bool(np.any(array.numpy())) for array in arrays] == [True, False, False]
