"""The fixed evaluator: how often, when it cuts, and what it makes of noisy times."""

from __future__ import annotations

import numpy as np
import pytest

from workers.engine.errors import IllegalMethod, UnknownPart
from workers.engine.evaluator import FixedEvaluator, estimate, evaluator_from
from workers.engine.methods import METHODS


def timed(evaluator: FixedEvaluator, seconds: float, incumbent: float | None, noise: float = 0.0) -> list[float]:
    rng = np.random.default_rng(4)
    times: list[float] = []
    while more := evaluator.more(times, incumbent):
        times += [seconds * float(1 + noise * rng.exponential()) for _ in range(more)]
    return times


@pytest.mark.parametrize(("seconds", "runs"), [(1e-5, 100), (1e-3, 20), (4e-3, 5), (1.0, 3)])
def test_runs_follow_the_time_a_run_takes(seconds: float, runs: int) -> None:
    assert len(timed(FixedEvaluator(seconds=0.02001), seconds, None)) == runs
    assert len(timed(FixedEvaluator(seconds=0.02001), seconds, 2 * seconds)) == runs


def cuts_after_first_run(evaluator: FixedEvaluator) -> bool:
    times = timed(evaluator, 30e-3, 1e-3)
    return len(times) == 1 and evaluator.verdict(times, 1e-3) == "rejected"


def test_a_much_slower_program_is_cut_after_its_first_run() -> None:
    assert cuts_after_first_run(FixedEvaluator())


@pytest.mark.mutation
def test_mutation_an_evaluator_that_never_rejects_fails_the_gate() -> None:
    assert not cuts_after_first_run(FixedEvaluator(reject=0.0))


def test_a_slightly_slower_program_is_cut_once_that_is_certain() -> None:
    times = timed(FixedEvaluator(), 1.2e-3, 1e-3, noise=0.02)
    assert len(times) == 3
    assert FixedEvaluator().verdict(times, 1e-3) == "rejected"


def test_a_faster_program_is_never_cut_by_disturbed_runs() -> None:
    """Two of three runs are slowed by neighbours; one run under the incumbent is enough to go on."""
    times = [5e-3, 0.9e-3, 5e-3]
    assert FixedEvaluator().more(times[:2], 1e-3) > 0
    assert FixedEvaluator().more(times, 1e-3) > 0
    assert FixedEvaluator().verdict(times, 1e-3) == "complete"


def test_first_runs_that_were_disturbed_are_followed_by_as_many_as_the_quickest_asks_for() -> None:
    times = [15e-3, 1e-3, 44e-3]
    assert len(times) + FixedEvaluator().more(times, None) == 20


def test_good_programs_are_rarely_cut_and_known_to_about_one_per_cent() -> None:
    """5 % normal noise on 1 ms and 20 runs: the median's error is 1.4 %. At most 3 % of 300 are cut."""
    rng, cut, errors = np.random.default_rng(0), 0, []
    for _ in range(300):
        times: list[float] = []
        while more := FixedEvaluator().more(times, 1.04e-3):
            times += [float(t) for t in 1e-3 * rng.normal(1, 0.05, size=more)]
        cut += FixedEvaluator().verdict(times, 1.04e-3) == "rejected"
        errors.append(FixedEvaluator().estimate(times)[0] / 1e-3 - 1)
    assert cut <= 9
    assert np.std(errors) < 0.03


def test_paper_preset_takes_500_runs_and_rejects_nothing() -> None:
    paper = METHODS["autotvm"].make_evaluator()
    assert paper.more([], 1e-6) == 500
    assert len(timed(paper, 1.0, 1e-6)) == 500
    assert paper.verdict([1.0] * 500, 1e-6) == "complete"


def test_the_median_shrugs_off_neighbours_and_the_mean_does_not() -> None:
    times = [1e-3] * 15 + [9e-3] * 5
    assert estimate(times)[0] == 1e-3
    assert estimate(times, "mean")[0] == pytest.approx(3e-3)


def test_the_spread_is_the_error_of_the_estimate() -> None:
    """Over 2,000 samples of 25 normal times; 15 % for the small-sample bias of the median absolute deviation."""
    rng = np.random.default_rng(1)
    for statistic in ("median", "mean"):
        pairs = np.asarray([estimate(rng.normal(1.0, 0.05, 25).tolist(), statistic) for _ in range(2000)])
        assert pairs[:, 1].mean() == pytest.approx(pairs[:, 0].std(), rel=0.15)


def test_one_run_has_an_assumed_spread_and_none_is_an_error() -> None:
    assert estimate([2.0]) == (2.0, pytest.approx(0.2))
    with pytest.raises(ValueError, match="no run was timed"):
        estimate([])


def test_bad_descriptions_name_what_is_legal() -> None:
    with pytest.raises(UnknownPart, match="choose one of adaptive, fixed"):
        evaluator_from("adaptve", {})
    with pytest.raises(IllegalMethod, match="runs 0 must be from 1"):
        evaluator_from("fixed", {"runs": 0})
    with pytest.raises(IllegalMethod, match="repeats"):
        evaluator_from("fixed", {"repeats": 4})
