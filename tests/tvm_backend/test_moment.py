"""Programs are timed while the machine is as fast as it usually is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tvm_backend.local import THREADS, target

pytestmark = pytest.mark.tvm
LOOK, PATIENCE = 1e-4, 0.3


def made() -> Any:
    target()
    import tvm

    from workers.tvm_backend.moment import Moment

    return Moment(tvm.target.Target(target()), THREADS)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterator[float]], Any]:
    """One whose program takes these times LOOK, look by look, by its own clock; unless it is `new` it has looked before."""

    def under(slower: Iterator[float], new: bool = False) -> Any:
        from workers.tvm_backend import moment as module

        clock, found = [0.0], made()
        found.lately.extend([] if new else [LOOK])

        def passing(seconds: float) -> None:
            clock[0] += seconds

        looks = (factor for one in slower for factor in (one, one))  # a look is two calls
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock[0], sleep=passing))
        found._entry = lambda _: passing(LOOK * next(looks))
        return found

    return under


def counted(found: Any) -> tuple[int, float]:
    """How often it was timed, and the seconds lost."""
    calls = []
    said, lost = found.of(lambda: calls.append(1) or len(calls), PATIENCE)
    assert said == len(calls), "the last one counts"
    return len(calls), lost


def test_the_program_has_a_part_for_every_thread_and_changes_nothing() -> None:
    found = made()
    assert found.of(lambda: 7, 0.0)[0] == 7
    assert found._numbers.shape[0] == THREADS
    assert (found._numbers.numpy() == 1).all()
    assert min(found.lately) > 5e-6


def test_in_a_good_moment_nothing_is_lost(moment: Any) -> None:
    found = moment(repeat(1.0))
    for _ in range(9):
        assert counted(found) == (1, pytest.approx(2 * LOOK))


def test_a_bad_moment_is_waited_for(moment: Any) -> None:
    found = moment(chain(repeat(1.0, 20), repeat(2.0, 10), repeat(1.0)))
    for _ in range(10):
        assert counted(found)[0] == 1
    times, lost = counted(found)
    assert times == 1
    assert 0.05 < lost < 0.06, "ten pauses"


def test_what_ran_into_a_bad_moment_is_timed_again(moment: Any) -> None:
    found = moment(chain(repeat(1.0, 21), repeat(2.0, 3), repeat(1.0)))
    for _ in range(10):
        assert counted(found)[0] == 1
    assert counted(found)[0] == 2


def test_a_machine_that_became_slower_for_good_is_waited_for_once(moment: Any) -> None:
    from workers.tvm_backend.moment import LATELY

    found = moment(chain(repeat(1.0, LATELY), repeat(2.0)))
    lost = [counted(found)[1] for _ in range(LATELY)]
    assert max(lost) < 1.1 * PATIENCE
    assert sum(lost) < 8 * PATIENCE
    assert max(lost[-20:]) < 10 * LOOK


def test_what_is_found_at_the_start_is_not_the_usual_before_the_machine_has_rested(moment: Any) -> None:
    found = moment(chain(repeat(2.0, 3), repeat(1.0, 4), repeat(2.0, 6), repeat(1.0)), new=True)
    assert found.acquainted(()) < 0.3
    times, lost = counted(found)
    assert times == 1
    assert found.looks[-1] == pytest.approx(LOOK), "it was timed in a good moment"
    assert lost < 0.5
    assert found.acquainted(()) == 0.0, "only the first one waits for that"
    assert counted(found) == (1, pytest.approx(2 * LOOK))


def test_what_others_saw_spares_a_worker_its_rests(moment: Any) -> None:
    found = moment(chain(repeat(2.0, 3), repeat(1.0)), new=True)
    assert found.acquainted([LOOK] * 4) == 0.0
    assert counted(found)[0] == 1
    assert found.looks[-1] == pytest.approx(LOOK)
    assert found.acquainted([9.0]) == 0.0
    assert max(found.lately) < 1.0, "by now it has seen for itself"


@pytest.mark.mutation
def test_without_rests_the_moment_of_the_start_is_the_usual(moment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import moment as module

    found = moment(chain(repeat(2.0, 6), repeat(1.0)), new=True)
    monkeypatch.setattr(module, "FIRST", 0)
    found.acquainted(())
    assert counted(found)[0] == 1
    assert found.looks[-1] == pytest.approx(2 * LOOK), "timed at half of the speed"


def test_who_has_no_patience_left_times_at_once(moment: Any) -> None:
    found = moment(chain(repeat(1.0, 20), repeat(2.0)))
    for _ in range(10):
        counted(found)
    assert found.of(lambda: 7, -1.0) == (7, pytest.approx(4 * LOOK))


@pytest.mark.mutation
def test_without_looking_a_bad_moment_is_not_noticed(moment: Any) -> None:
    found = moment(chain(repeat(1.0, 21), repeat(2.0, 3), repeat(1.0)))
    found._good = lambda: True
    for _ in range(11):
        assert counted(found)[0] == 1
