"""What a network reads again soon is told by its programs, and lies in the caches when they are timed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.test_arguments import handover
from tests.tvm_backend.test_configurations import Compiled, compiled
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

WIDTH, STEPS = 128, 12
SIZE = 4 * WIDTH * WIDTH


def steps(shared: bool = True, between: int = 0) -> ModelProto:
    """As many products as a recurrence takes steps, by the same weights or by others in each, with so many products of weights
    of their own between two steps."""
    nodes, weights, name = [], [constant("w", drawn(WIDTH, WIDTH))] if shared else [], "x"

    def product(of: str, kind: str, made: str) -> str:
        nodes.append(helper.make_node("MatMul", [name, of], [f"{made}_sum"]))
        nodes.append(helper.make_node(kind, [f"{made}_sum"], [made]))
        return made

    for step in range(STEPS):
        each = [*([] if shared else [f"w{step}"]), *(f"v{step}_{place}" for place in range(between))]
        weights += [constant(own, drawn(WIDTH, WIDTH, seed=step)) for own in each]
        name = product("w" if shared else f"w{step}", "Tanh", f"h{step}" if step < STEPS - 1 or between else "y")
        for place in range(between):
            last = step == STEPS - 1 and place == between - 1
            name = product(f"v{step}_{place}", "Abs", "y" if last else f"h{step}_{place}")
    return model_of(nodes, {"x": [1, WIDTH]}, {"y": None}, weights)


def again(one: Compiled) -> dict[int, list[int]]:
    """Of each operator, how much is touched from one reading of its constants to the next."""
    return {
        task.weight: [size for _, size in work.constants]
        for task, work in zip(one.extracted, one.workloads, strict=True)
    }


def test_a_recurrence_reads_its_weights_again_in_the_next_step(tmp_path: Path) -> None:
    assert again(compiled(steps(), tmp_path))[STEPS] == [SIZE]


def test_what_is_read_once_an_inference_is_not_told(tmp_path: Path) -> None:
    from workers.tvm_backend.rereading import READ_AGAIN

    one = compiled(steps(shared=False), tmp_path)
    assert all(size == 0 for sizes in again(one).values() for size in sizes)
    assert all(READ_AGAIN not in workload.mod["main"].attrs for workload in one.workloads), "operators keep their keys"


def test_what_one_operator_reads_twice_is_no_step(tmp_path: Path) -> None:
    """Scale and shift of a normalisation that are the same constant, as zeros are before training."""
    node = helper.make_node("LayerNormalization", ["x", "s", "s"], ["y"])
    model = model_of([node], {"x": [64, 64]}, {"y": None}, [constant("s", drawn(64))], 17)
    assert all(size == 0 for sizes in again(compiled(model, tmp_path)).values() for size in sizes)


def test_what_is_touched_between_two_steps_counts(tmp_path: Path) -> None:
    """Four times as many weights, and some more: the power of two below."""
    assert again(compiled(steps(between=3), tmp_path))[STEPS] == [4 * SIZE]


def places(within: int, calls: int = 12) -> int:
    """At how many places weights lie, call after call."""
    from workers.tvm_backend.arguments import MOVED, Arguments, Footprint

    shapes: list[Any] = [((1, WIDTH), "float32"), ((4 * WIDTH, WIDTH), "float32"), ((1, 4 * WIDTH), "float32")]
    assert 4 * SIZE >= MOVED
    given = Arguments(Footprint(64 * SIZE), handover()).of(0, shapes, [(1, within)])
    return len({tensors[1].data_ptr() for tensors in islice(given.calls, calls)})


def test_weights_that_are_read_again_soon_move_through_what_is_touched_until_then() -> None:
    assert places(0) == 12, "of 16"
    assert places(32 * SIZE) == 8
    assert places(8 * SIZE) == 2
    assert places(4 * SIZE) == places(1) == 1, "they rest"


def test_weights_of_one_operator_move_each_through_what_is_theirs() -> None:
    from workers.tvm_backend.arguments import Arguments, Footprint

    shapes: list[Any] = [((4 * WIDTH, WIDTH), "float32")] * 2 + [((1, 4 * WIDTH), "float32")]
    given = Arguments(Footprint(64 * SIZE), handover()).of(0, shapes, [(0, 8 * SIZE), (1, 0)])
    seen = [(tensors[0].data_ptr(), tensors[1].data_ptr()) for tensors in islice(given.calls, 12)]
    assert [len({*places}) for places in zip(*seen, strict=True)] == [2, 12]


@pytest.mark.mutation
def test_weights_that_move_on_regardless_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import arguments

    right = arguments._Ring.next
    monkeypatch.setattr(
        arguments._Ring, "next", lambda ring, shape, dtype, within: right(ring, shape, dtype, ring.size)
    )
    with pytest.raises(AssertionError):
        test_weights_that_are_read_again_soon_move_through_what_is_touched_until_then()


def test_the_network_computes_the_same(tmp_path: Path) -> None:
    from tests.tvm_backend.local import reference

    one = compiled(model := steps(), tmp_path)
    x = np.random.default_rng(0).standard_normal((1, WIDTH)).astype(np.float32)
    np.testing.assert_allclose(
        one.run(one.drawn(np.random.default_rng(0)), x), reference(model, x), rtol=1e-3, atol=1e-4
    )
