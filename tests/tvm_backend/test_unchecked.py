"""What a user hands a network is checked; what its programs hand each other is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.tvm_backend.local import _mixed, checks, target
from tests.tvm_backend.test_configurations import Compiled, compiled
from tests.tvm_backend.test_linking import BOARD
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

WEIGHTS = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)


def flattened() -> ModelProto:
    """Two products; the first sees the input through a reshape, for which TVM moves nothing."""
    nodes = [
        helper.make_node("Reshape", ["x", "sizes"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["m"]),
        helper.make_node("MatMul", ["m", "w"], ["y"]),
    ]
    weights = [constant("sizes", np.int64([4, 32])), constant("v", WEIGHTS), constant("w", WEIGHTS[:, :16])]
    return model_of(nodes, {"x": [1, 4, 8, 4]}, {"y": None}, weights)


def repeated() -> ModelProto:
    """One program that reads the input, and then its own result."""
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["m"]),
        helper.make_node("Tanh", ["m"], ["t"]),
        helper.make_node("MatMul", ["t", "v"], ["n"]),
        helper.make_node("Tanh", ["n"], ["u"]),
        helper.make_node("Softmax", ["u"], ["y"]),
    ]
    return model_of(nodes, {"x": [1, 32, 32]}, {"y": None}, [constant("v", WEIGHTS)])


NETWORKS: dict[str, tuple[Callable[[], ModelProto], int]] = {
    "mixed": (_mixed, 1),
    "flattened": (flattened, 2),
    "repeated": (repeated, 1),
}
"""How many of their programs check what they are given."""


@pytest.fixture(scope="module", autouse=True)
def _runtime() -> None:
    target()


@pytest.fixture(scope="module", params=NETWORKS)
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Compiled, int]:
    make, count = NETWORKS[request.param]
    return compiled(make(), tmp_path_factory.mktemp("network")), count


def built(network: Compiled) -> Any:
    return network.network.compiled(network.drawn(np.random.default_rng(3)))


def ran(library: Any, shape: list[int], dtype: str = "float32", step: int = 1) -> Any:
    """On ones, of which every `step`th is read, as a user's own loader may hand them over."""
    import tvm
    import tvm_ffi
    from tvm import relax

    held = tvm.runtime.empty((*shape[:-1], shape[-1] * step), dtype)  # which lies where programs want it
    array = np.from_dlpack(held)
    array[:] = 1
    output = relax.VirtualMachine(library, tvm.cpu())["main"](tvm_ffi.from_dlpack(array[..., ::step]))
    return output if hasattr(output, "numpy") else output[0]


def refuses(library: Any, shape: list[int]) -> None:
    assert np.isfinite(ran(library, shape).numpy()).all()
    with pytest.raises((ValueError, RuntimeError), match=r"expected to be compact array|view for compact tensor"):
        ran(library, shape, step=2)
    with pytest.raises(ValueError, match="expect Tensor with dtype float32 but get float64"):
        ran(library, shape, "float64")
    with pytest.raises(RuntimeError, match="mismatch to specified constant"):
        ran(library, [*shape[:-1], shape[-1] + 1])


def test_a_tuned_network_refuses_what_it_was_not_compiled_for(network: tuple[Compiled, int]) -> None:
    refuses(built(network[0]), network[0].shape)


def test_an_untuned_network_refuses_it_too(network: tuple[Compiled, int]) -> None:
    from workers.tvm_backend.library import compile_network

    refuses(compile_network(network[0].imported, None, network[0].target), network[0].shape)


def test_only_programs_that_read_an_input_check_it(network: tuple[Compiled, int]) -> None:
    compiled, count = network
    found = checks(built(compiled))
    assert len(found) > sum(found.values()) == count


def test_a_network_for_another_processor_is_compiled_so_too(network: tuple[Compiled, int]) -> None:
    import tvm

    from workers.tvm_backend.library import compile_network

    compiled, count = network
    found = checks(compile_network(compiled.imported, None, tvm.target.Target(BOARD)))
    assert len(found) > sum(found.values()) == count


@pytest.mark.mutation
@pytest.mark.parametrize("make", [_mixed, repeated])
def test_an_input_that_nobody_checks_is_noticed(
    make: Callable[[], ModelProto], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import unchecked

    network = compiled(make(), tmp_path)
    monkeypatch.setattr(unchecked._Made, "__call__", lambda self, expr: True)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        refuses(built(network), network.shape)


@pytest.mark.mutation
def test_an_input_behind_a_reshape_that_nobody_checks_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = compiled(flattened(), tmp_path)
    monkeypatch.setattr("tvm.relax.analysis.has_reshape_pattern", lambda program: False)
    with pytest.raises(AssertionError):
        test_only_programs_that_read_an_input_check_it((network, 2))
