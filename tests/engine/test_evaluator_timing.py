"""When the runs of one program end, and how many are made at once."""

from __future__ import annotations

import pytest

from workers.engine.evaluator import FixedEvaluator
from workers.engine.evaluator.estimate import SHORTEST_RUN
from workers.engine.evaluator.timing import timed_runs
from workers.engine.methods import METHODS


class Program:
    """Takes `seconds` a run, and `handover` on top; `asked` is how many were asked for at once, `left` the seconds that remain
    of `total`."""

    def __init__(self, seconds: float, total: float, handover: float = 0.0) -> None:
        self.seconds, self.left, self.handover = seconds, total, handover
        self.asked: list[int] = []

    def runs(self, count: int) -> list[float]:
        self.asked.append(count)
        self.left -= count * (self.seconds + self.handover)
        return [self.seconds] * count


def timed(program: Program, **changed: float) -> tuple[int, str]:
    """Runs made, and why they ended, for the 500 that the papers take."""
    evaluator = FixedEvaluator(**{**METHODS["autotvm"].parameters["evaluator"], **changed})
    times, why = timed_runs(evaluator, None, program.runs, lambda: program.left)
    assert set(times) == {program.seconds}
    return len(times), why


def test_a_program_that_fits_gets_every_run_its_evaluator_asks_for() -> None:
    program = Program(1e-3, total=8.0)
    assert timed(program) == (500, "complete")
    assert program.asked == [1, 499]


def test_a_slow_program_is_given_up_and_keeps_what_was_timed() -> None:
    program = Program(0.125, total=8.0)
    assert timed(program) == (64, "late")
    assert program.asked == [1, 63]


def test_what_is_handed_over_for_a_run_counts_too() -> None:
    """499 more of 15 ms would fit, had not each large tensors to be brought."""
    program = Program(0.015, total=8.0, handover=0.02)
    assert timed(program) == (228, "late")
    assert program.asked == [1, 227]
    assert 0 <= program.left < 0.035


@pytest.mark.parametrize("total", [0.0, 0.5])
def test_the_first_run_is_made_whatever_time_there_is(total: float) -> None:
    program = Program(1.0, total)
    assert timed(program) == (1, "late")
    assert program.asked == [1]


def test_short_programs_count_as_the_shortest_run() -> None:
    """A stopwatch calls a program of 1 µs 200 times a run: 0.02 s have room for 99 more runs, not for 20,000. In the papers'
    scripts a run is one call."""
    program = Program(1e-6, total=0.02)
    timed(program, shortest=SHORTEST_RUN)
    assert program.asked[:2] == [1, 99]
    program = Program(1e-6, total=0.02)
    assert timed(program) == (500, "complete")
    assert program.asked == [1, 499]
