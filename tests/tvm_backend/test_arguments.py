"""Timed programs read weights that the caches have forgotten, and their threads do not get in one another's way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.tvm_backend.local import THREADS, target

pytestmark = pytest.mark.tvm

WEIGHTS, INPUT = (64, 512), (64, 512)


@pytest.fixture(scope="module")
def addition() -> Any:
    """out = input + weights, with the argument checks left out as measured programs have it."""
    target()
    import tvm
    from tvm import te

    a, b = te.placeholder(INPUT, name="a"), te.placeholder(WEIGHTS, name="b")
    c = te.compute(INPUT, lambda i, j: a[i, j] + b[i, j], name="c")
    with tvm.transform.PassContext(config={"tirx.disable_assert": True}):
        return tvm.tirx.build(te.create_prim_func([a, b, c]), target=tvm.target.Target(target()))["main"]


def handover() -> Any:
    target()
    import tvm

    from workers.tvm_backend.handover import Handover

    return Handover(tvm.target.Target(target()), THREADS)


def called(addition: Any, footprint: int, calls: int) -> list[Any]:
    """Weights as the program saw them, call by call."""
    from workers.tvm_backend.arguments import Arguments, Footprint

    shapes = [(INPUT, "float32"), (WEIGHTS, "float32"), (INPUT, "float32")]
    given = Arguments(Footprint(footprint), handover()).of(0, shapes, ((1, 0),))
    seen = []
    for a, b, c in islice(given.calls, calls):
        addition(a, b, c)
        seen.append(c.numpy() - a.numpy())
    return seen


def distinct(arrays: list[Any]) -> int:
    return len({array.round(3).tobytes() for array in arrays})


def test_weights_are_others_with_every_call_until_the_storage_is_through(addition: Any) -> None:
    size = 4 * int(np.prod(WEIGHTS))
    assert distinct(called(addition, 4 * size, 8)) == 4


def test_large_outputs_are_written_where_the_caches_have_forgotten_and_small_ones_rest() -> None:
    from workers.tvm_backend.arguments import LARGE, Arguments, Footprint

    def places(size: int, footprint: int) -> tuple[int, int]:
        shapes = [((size // 4,), "float32"), ((size // 4,), "float32")]
        given = Arguments(Footprint(room=footprint // 2), handover()).of(0, shapes, ())
        return len({out.data_ptr() for _, out in islice(given.calls, 6)}), len(given.handed)

    assert places(LARGE, 3 * LARGE) == (3, 1), "what was read a moment ago is handed over in any case"
    assert places(LARGE, LARGE) == places(LARGE // 2, 3 * LARGE) == (1, 2)


@pytest.mark.parametrize(("dtype", "distinct"), [("float64", 6), ("int8", 6), ("int64", 1)])
def test_what_is_no_index_moves(dtype: str, distinct: int) -> None:
    from workers.tvm_backend.arguments import MOVED, Arguments, Footprint

    each = np.dtype(dtype).itemsize
    shapes = [((16,), "float32"), ((MOVED // each,), dtype), ((16,), "float32")]
    given = Arguments(Footprint(8 * MOVED), handover()).of(0, shapes, ((1, 0),))
    seen = [tensors[1] for tensors in islice(given.calls, 6)]
    assert len({tensor.data_ptr() for tensor in seen}) == distinct
    assert np.isfinite(seen[0].numpy()).all()


def test_a_network_with_one_operator_keeps_its_weights(addition: Any) -> None:
    assert distinct(called(addition, 4 * int(np.prod(WEIGHTS)), 4)) == 1


def test_weights_too_large_to_move_are_filled_once_for_all_operators() -> None:
    from workers.tvm_backend.arguments import MOVED, Arguments, Footprint

    made = Arguments(Footprint(4 * MOVED), handover())

    def weights(operator: int, size: int, dtype: str = "float32") -> Any:
        each = 4 if dtype == "float32" else 1
        shapes = [((1, 16), "float32"), ((size // each,), dtype), ((1, 16), "float32")]
        given = made.of(operator, shapes, ((1, 0),))
        first, second = (tensors[1].data_ptr() for tensors in islice(given.calls, 2))
        assert first == second
        return first

    one = weights(0, 4 * MOVED)
    assert weights(1, 3 * MOVED) == weights(0, 4 * MOVED) == one
    assert weights(1, 5 * MOVED) == weights(0, 4 * MOVED) != one
    assert weights(2, 6 * MOVED + 1, "uint8") == weights(0, 4 * MOVED), "bytes that are no whole number of floats"


@pytest.mark.mutation
def test_views_with_an_offset_would_be_noticed(addition: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import tvm

    from workers.tvm_backend import arguments

    class Views(arguments._Ring):
        def next(self, shape: tuple[int, ...], dtype: str, within: int) -> Any:
            kept = self.__dict__.setdefault("kept", tvm.runtime.tensor(self._storage))
            at = (self._cursors.get(within, 0) + 4 * int(np.prod(shape))) % self.size
            self._cursors[within] = at
            return kept._create_view(shape, dtype, relative_byte_offset=at)

    monkeypatch.setattr(arguments, "_Ring", Views)
    assert distinct(called(addition, 16 * int(np.prod(WEIGHTS)), 8)) == 1


def sums_of_products(length: int, footprint: int, weights: tuple[tuple[int, int], ...] = ((1, 0),)) -> Any:
    """64 sums of `length` products, of the input with the weights as programs get them."""
    target()
    from workers.tvm_backend.arguments import Arguments, Footprint

    shapes = [((1, length), "float32"), ((length, 64), "float32"), ((1, 64), "float32")]
    given = Arguments(Footprint(footprint, footprint), handover()).of(0, shapes, weights)
    first, second, _ = (tensor.numpy() for tensor in next(given.calls))
    return first @ second


@pytest.mark.parametrize("footprint", [0, 1 << 24], ids=["resting", "moving"])
@pytest.mark.parametrize("length", [32, 512, 4096])
def test_sums_of_products_are_of_both_signs_and_of_the_size_of_one(length: int, footprint: int) -> None:
    sums = sums_of_products(length, footprint)
    assert 0.1 < np.abs(sums).mean() < 4
    assert 8 < (sums > 0).sum() < 56


@pytest.mark.mutation
def test_weights_like_inputs_would_make_sums_of_hundreds() -> None:
    assert sums_of_products(512, 0, weights=()).min() > 50


def test_a_program_too_slow_for_its_evaluator_keeps_what_was_timed(addition: Any) -> None:
    from workers.engine.evaluator.estimate import SHORTEST_RUN
    from workers.engine.methods import method
    from workers.tvm_backend.arguments import Arguments, Footprint
    from workers.tvm_backend.stopwatch import Stopwatch, timed

    shapes = [(INPUT, "float32"), (WEIGHTS, "float32"), (INPUT, "float32")]
    size = 4 * int(np.prod(WEIGHTS))

    def runs(longest: float) -> tuple[int, str]:
        handing, evaluator = handover(), method("autotvm", {"evaluator.shortest": str(SHORTEST_RUN)}).make_evaluator()
        given = Arguments(Footprint(4 * size), handing).of(0, shapes, ((1, 0),))
        times, why = timed(Stopwatch(addition, given, handing, evaluator.shortest), evaluator, None, longest)
        return len(times), why

    assert runs(60.0) == (500, "complete")
    few, why = runs(0.02)
    assert why == "late"
    assert 1 <= few < 500


def test_what_is_handed_over_fills_a_run_and_is_not_in_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first handing over is long, as one that wakes threads is, before the quicker call."""
    from workers.tvm_backend import stopwatch
    from workers.tvm_backend.arguments import Given

    seconds, handing, calling = [0.0], iter([4e-4, *[5e-5] * 99]), iter([1e-6, *[2e-6] * 99])

    def passing(of: Iterator[float]) -> Callable[..., None]:
        return lambda *_: seconds.append(seconds[-1] + next(of))

    monkeypatch.setattr(stopwatch, "time", SimpleNamespace(perf_counter=lambda: seconds[-1]))
    times = stopwatch.Stopwatch(passing(calling), Given(repeat([]), ()), passing(handing)).runs(3)
    assert times == pytest.approx([1e-6, 2e-6, 2e-6])
    assert len(seconds) == 1 + 2 * (2 + 2 * 4)  # four calls fill the 200 microseconds of a run


@pytest.mark.parametrize("batch", [1, 3])
def test_every_line_is_written_anew_and_nothing_changes(batch: int) -> None:
    import tvm

    handing, numbers = handover(), np.arange(3 * 4 * 16 * 5, dtype=np.int32)
    tensor = tvm.runtime.tensor(numbers)
    part = handing.parts(tensor, numbers.nbytes, batch)
    handing([part])
    assert np.array_equal(tensor.numpy(), numbers)
    handing._entry(part, 1 << 20)  # what would be nothing shows which numbers were written
    written = tensor.numpy() != numbers
    lines = numbers.nbytes // 64
    assert written.sum() == lines // (batch * THREADS) * batch * THREADS
    assert written[::16].sum() == written.sum()


def test_weights_and_what_is_smaller_than_a_line_a_thread_are_not_handed_over() -> None:
    from workers.tvm_backend.arguments import Arguments, Footprint

    shapes = [(INPUT, "float32"), (WEIGHTS, "float32"), ((1, 4), "float32"), (INPUT, "float32")]
    given = Arguments(Footprint(), handover()).of(0, shapes, ((1, 0),))
    size = 4 * int(np.prod(INPUT))
    assert [int(np.prod(part.shape)) * 4 for part in given.handed] == [size, size]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core cannot be shared out")
def test_every_thread_of_the_pool_gets_a_core_of_its_own() -> None:
    script = (
        "import os; from workers.tvm_backend import runtime; runtime.load(); cores = runtime.spread_threads()\n"
        "with runtime.on_core(cores):\n"
        "    alone = [t for t in os.listdir('/proc/self/task') if len(os.sched_getaffinity(int(t))) == 1]\n"
        "    print(len({tuple(os.sched_getaffinity(int(t))) for t in alone}), len(alone))\n"
        "print(len(os.sched_getaffinity(0)) == len(cores))"
    )
    from workers.tvm_backend.runtime import environment

    said = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment(2)}, capture_output=True, text=True, check=True
    ).stdout.split()
    assert said[-3:] == ["2", "2", "True"]
