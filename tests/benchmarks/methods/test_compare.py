"""Which cells are compared, and the ratios between two."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.methods.finished import FAILED, FAST, SLOW, cell
from workers.benchmarks.methods.arms import arm_named
from workers.benchmarks.methods.claims import evaluated, table
from workers.benchmarks.methods.compare import (
    NO_REGRET,
    Measure,
    affordable,
    decision_seconds,
    fewer,
    gained,
    grouped,
    left_out,
    measuring,
    most_in_time,
    not_scheduling,
    operator_quality,
    own_seconds,
    quality,
    quality_in_time,
    ratios,
    regretted,
    scored_a_search,
    searching,
    summary,
    versions_apart,
)
from workers.benchmarks.methods.reach import (
    ahead_from,
    measurements_to_same,
    seconds_to_base,
    seconds_to_same,
    time_to_final,
    time_to_same,
)
from workers.headless.errors import UserMistake


def test_ratios_say_how_much_sooner_the_base_s_end_is_reached() -> None:
    assert time_to_same(SLOW, FAST) == [2.0]
    assert time_to_final(SLOW, FAST) == [pytest.approx(80 / 60)]
    assert measurements_to_same(SLOW, FAST) == [2.0]
    assert time_to_same(FAST, SLOW) == [0.0]  # never reached counts as infinitely slow
    assert quality_in_time(SLOW, FAST) == [pytest.approx(6.0 / 5.02)]
    assert scored_a_search(SLOW, cell([[1, 5.0]], scored=50)) == [2.0]
    assert gained(SLOW, SLOW) == [2.0]
    assert fewer(SLOW, cell([[1, 5.0]], trials=25)) == [4.0]
    assert fewer(SLOW, cell([[1, 5.0]], trials=0)) == []
    assert operator_quality(SLOW, FAST) == [pytest.approx(5.0 / 4.9)]


def test_of_two_operators_one_that_never_comes_is_not_half_of_the_other() -> None:
    def run(second: float) -> dict[str, Any]:
        rows = [
            {**SLOW["operators"][0], "series": [[1, 1.0, 10, 10.0], [50, 45.0, 500, best]]} for best in (5.0, second)
        ]
        return {**SLOW, "operators": [{**row, "best": row["series"][-1][3]} for row in rows]}

    assert measurements_to_same(run(5.0), run(9.0)) == [1.0, 0.0]
    assert ratios({0: run(5.0)}, {0: run(9.0)}, measurements_to_same) == [0.0]


@pytest.mark.parametrize(
    "measure",
    [time_to_same, measurements_to_same, seconds_to_same, measuring, quality, operator_quality, quality_in_time],
)
def test_an_arm_that_failed_counts_as_the_worst_and_a_base_that_failed_not_at_all(measure: Measure) -> None:
    """An arm that fails on two of five seeds is not judged by its three good ones."""
    found = ratios(dict.fromkeys(range(5), SLOW), {seed: FAILED if seed > 2 else FAST for seed in range(5)}, measure)
    assert found[3:] == [0.0, 0.0]
    assert measure(FAILED, SLOW) == []


def test_an_arm_that_is_not_complete_in_half_the_time_has_no_speed_there() -> None:
    assert quality_in_time(SLOW, cell([[51, 1.0]])) == [0.0]
    assert quality_in_time(cell([[51, 1.0]]), SLOW) == []


def test_when_an_operator_has_its_turn_is_not_its_speed_in_equal_time() -> None:
    """Two operators, one after the other, of which the second has its first configuration only halfway through the run."""
    second = {**SLOW["operators"][0], "series": [[1, 1.0, 10, 10.0], [50, 45.0, 500, 6.0]]}
    base = {**SLOW, "seconds": 200.0, "operators": [SLOW["operators"][0], second], "curve": [[1, 20.0], [195, 11.0]]}
    assert quality_in_time(base, {**base, "curve": [[1, 20.0], [99, 11.0]]}) == [1.0, 1.0]


def test_speed_in_equal_time_is_told_of_the_operator_that_gains_most_too() -> None:
    base, fast = ({**one, "operators": [*one["operators"], *SLOW["operators"]]} for one in (SLOW, FAST))
    assert quality_in_time(base, fast) == [pytest.approx(6.0 / 5.02), 1.0]
    assert most_in_time(base, fast) == [pytest.approx(6.0 / 5.02)]
    assert most_in_time(FAILED, SLOW) == []


def test_a_live_run_tells_what_its_walks_scored_as_a_whole() -> None:
    def live(walks: int, scored: float) -> dict[str, Any]:
        operator = {name: value for name, value in SLOW["operators"][0].items() if name != "calls"}
        return {**SLOW, "operators": [operator], "search": {"walks": walks, "evaluations_to_best": scored}}

    assert scored_a_search(live(10, 300.0), live(20, 200.0)) == [3.0]
    assert scored_a_search(live(10, 300.0), live(0, 0.0)) == []


def test_when_two_are_at_the_final_latency_of_one_and_from_when_on_the_other_is_ahead() -> None:
    """FAST is behind SLOW's 6.0 from no moment on: it is there first; a late one comes first to be behind."""
    assert own_seconds(SLOW, FAST) == [80.0]
    assert seconds_to_base(SLOW, FAST) == [40.0]
    assert ahead_from(SLOW, FAST) == [1.0]
    late = cell([[1, 11.0], [70, 4.0]])
    assert ahead_from(SLOW, late) == [70.0]
    assert ahead_from(late, SLOW) == [100.0]  # behind at its end
    assert ahead_from.censored([(SLOW, late), (late, SLOW)]) == "1 of 2 arrive, the others at their ends"
    assert ahead_from(FAILED, SLOW) == []
    assert seconds_to_base(late, SLOW) == [100.0]  # and that is its end
    assert own_seconds(FAILED, SLOW) == seconds_to_base(FAILED, SLOW) == []


def test_what_never_comes_where_the_base_ended_is_counted_and_bounded_by_its_end() -> None:
    """SLOW ends 2 % over FAST, which was there after 60 of its 100 s: that is 0.6 at most, and 0 to be judged by."""
    every = [(FAST, FAST), (FAST, SLOW), (FAST, SLOW)]
    assert [time_to_same(*pair) for pair in every] == [[1.0], [0.0], [0.0]]
    assert time_to_same.censored(every) == "1 of 3 arrive, <= 0.60 with the others"
    assert measurements_to_same.censored(every[1:]) == "0 of 2 arrive, <= 0.60 with the others"
    assert seconds_to_same.censored(every[1:]) == "0 of 2 arrive, <= 0.60 with the others"
    assert seconds_to_base.censored(every) == "1 of 3 arrive, the others at their ends"
    assert time_to_same.censored(every[:1]) == time_to_same.censored([(FAILED, SLOW)]) == ""


def test_a_row_says_how_many_come() -> None:
    """Of five seeds three come: the median is the third, and with the two others at their ends no more."""
    slow = [cell(SLOW["curve"], key={"arm": "dynatune", "seed": seed}) for seed in (0, 1)]
    fast = [cell(FAST["curve"], key={"arm": "dynatune", "seed": seed}) for seed in (2, 3, 4)]
    base = [cell(FAST["curve"], key={"arm": "gradient", "seed": seed}) for seed in range(5)]
    rows = [row for row in evaluated([*slow, *fast, *base]) if "gradient" in row["text"] and row["networks"]]
    assert [row["notes"]["net (curve)"] for row in rows[:3]] == [
        ["3 of 5 arrive, <= 1.00 with the others"],
        ["3 of 5 arrive, <= 1.00 with the others"],
        ["3 of 5 arrive, the others at their ends"],
    ]
    assert "1.00 [0.00, 1.00] (n = 5), 3 of 5 arrive, <= 1.00 with the others" in table(rows)
    assert "3 of 5 arrive" in rows[0]["ours"]


@pytest.mark.parametrize(
    ("search", "part"),
    [(0.0, None), (20.0, 6.0), (60.0, 8 / 3), (100.0, 2.0)],
)
def test_what_search_may_take_to_be_as_fast(search: float, part: float | None) -> None:
    """FAST is there after 40 of its 100 s, SLOW after 80: of those 40 s the share of search could be longer by 40."""
    spent = {**FAST, "spent": {"search": search}}
    assert searching(SLOW, spent) == [search / 100]
    assert affordable(SLOW, spent) == ([] if part is None else [pytest.approx(part)])


def test_where_even_a_free_search_is_too_slow_nothing_of_it_can_be_afforded() -> None:
    slow = {**SLOW, "spent": {"search": 40.0}}
    assert affordable(cell([[10, 5.0]]), slow) == [0.0]  # 32 of 80 s are search, and 10 s are given
    assert affordable(cell([[64, 5.0]]), slow) == [pytest.approx(0.5)]
    assert affordable(cell([[1, 1.0]]), slow) == [0.0]  # never there


def test_what_a_decision_takes() -> None:
    assert decision_seconds(SLOW, {**SLOW, "spent": {"decision": 2.0}, "slots": 40}) == [0.05]
    assert decision_seconds(SLOW, SLOW) == []


def test_what_decisions_take_of_the_clock() -> None:
    assert not_scheduling(SLOW, {**SLOW, "spent": {"decision": 2.0}}) == [pytest.approx(0.98)]
    assert not_scheduling(SLOW, SLOW) == [1.0]


def test_regrets_are_compared_over_the_slots_that_both_had() -> None:
    """Of the longer run every second slot was kept, and what came after the other's end does not count."""
    shorter = {**SLOW, "regret": [[1, 0.2], [2, 0.4], [3, 0.6]]}
    longer = {**SLOW, "regret": [[1, 0.1], [3, 0.3], [5, 9.0]]}
    assert regretted(shorter, longer) == [pytest.approx(2.0)]
    assert regretted(longer, shorter) == [pytest.approx(0.5)]
    assert regretted(shorter, SLOW) == regretted(SLOW, shorter) == regretted(shorter, {**SLOW, "regret": []}) == []


def test_a_seed_without_regret_counts_as_the_best_there_can_be() -> None:
    """Left out, an arm would be judged by the seeds in which it was wrong."""
    some, none = ({**SLOW, "regret": [[1, regret], [3, regret]]} for regret in (0.4, 0.0))
    assert regretted(some, none) == [pytest.approx(0.4 / NO_REGRET)]
    assert regretted(none, some) == [pytest.approx(NO_REGRET / 0.4)]
    assert regretted(none, none) == [1.0]


def test_less_measuring_counts_only_with_the_same_result() -> None:
    assert measuring(SLOW, cell([[1, 5.0]], spent={"measure": 10.0})) == [5.0]
    assert measuring(SLOW, cell([[1, 5.2]], spent={"measure": 10.0})) == [0.0]


def test_seeds_are_paired_and_a_missing_one_is_left_out() -> None:
    assert ratios({0: SLOW, 1: SLOW}, {1: FAST, 2: FAST}, time_to_same) == [2.0]


def ended(when: str, arm: str = "dynatune", seed: int = 0, **key: str) -> dict[str, Any]:
    terms = {"arm": arm, "seed": seed, "budget": "50 trials of x at y", "version": "2", **key}
    return {**cell(SLOW["curve"], key=terms), "ended": when}


def test_what_was_measured_on_other_terms_is_not_compared() -> None:
    cells = [
        ended("1"),
        ended("1", "old"),
        ended("2", budget="90 trials of x"),
        ended("2", "sequential", budget="90 trials of z"),
    ]
    assert set(grouped(cells)["curve", "net"]) == {"dynatune", "sequential"}


@pytest.mark.parametrize(
    "latest",
    [{"budget": "90 trials of x"}, {"network": "calibrated anew"}, {"cpu": "another"}],
    ids=["budget", "landscape", "machine"],
)
def test_runs_that_are_not_compared_with_the_latest_are_counted(latest: dict[str, str]) -> None:
    """One trial run with another budget, and all others are gone from the table."""
    older = [ended("1", arm) for arm in ("dynatune", "sequential")]
    assert left_out(older) == ""
    said = left_out([*older, ended("2", "mine", **latest)])
    assert said.startswith(
        "net (curve): 2 runs with another recording or budget, or other prices, or on another machine"
    )


def test_live_runs_of_other_operators_are_not_compared() -> None:
    """Another version of the code imported the network otherwise; the pairs are those of their places."""

    def live(when: str, arm: str, version: str, *keys: str) -> dict[str, Any]:
        rows = [{**SLOW["operators"][0], "key": key} for key in keys]
        return {**ended(when, arm, layout="live", version=version), "operators": rows}

    older, newer = live("1", "sequential", "1", "a"), live("2", "dynatune", "2", "a", "b")
    assert set(grouped([older, newer])["live", "net"]) == {"dynatune"}
    assert evaluated([older, newer])
    assert left_out([older, newer]).startswith("net (live): 1 runs whose version of the code made other operators")
    again = live("3", "sequential", "2", "a", "b")
    assert set(grouped([older, newer, again])["live", "net"]) == {"dynatune", "sequential"}
    assert left_out([newer, again]) == ""


def test_an_arm_that_is_refused_now_is_still_compared() -> None:
    arm = "chameleon+explorer=metaschedule"
    with pytest.raises(UserMistake, match="would not ask"):
        arm_named(arm)
    assert [row["arm"] for row in summary([ended("1", arm), ended("1")])] == [arm, "dynatune"]


@pytest.mark.parametrize(
    "older",
    [{"budget": "50 trials of w at y"}, {"budget": "50 trials of x at z"}, {"version": "1"}],
    ids=["definition", "costs", "version"],
)
def test_medians_are_of_one_definition_and_version_of_an_arm(older: dict[str, str]) -> None:
    """Ten seeds, then a preset, its costs or the code changed, and five of them were run again."""
    new, old = [ended("2", seed=seed) for seed in range(5)], [ended("1", seed=seed, **older) for seed in range(10)]
    cells = [*new, *old, *(ended("1", "sequential", seed, **older) for seed in range(10))]
    arms = grouped(cells)["curve", "net"]
    assert {seed: run["ended"] for seed, run in arms["dynatune"].items()} == dict.fromkeys(range(5), "2")
    assert len(arms["sequential"]) == 10
    assert [row["seeds"] for row in summary(cells)] == [5, 10]


@pytest.mark.parametrize(("version", "apart"), [("1", True), ("2", False)])
def test_arms_of_different_versions_are_said_to_be(version: str, apart: bool) -> None:
    cells = [ended("1", "sequential", version=version), ended("2")]
    row = evaluated(cells)[0]
    assert row["apart"] == (["net (curve)"] if apart else [])
    assert ("1.00 (n = 1), two versions" in table([row])) is apart
    assert ("two versions" in row["ours"]) is apart
    said = versions_apart(summary(cells))
    assert ("2: dynatune; 1: sequential" in said) if apart else not said


@pytest.mark.parametrize(("layout", "said"), [("space", ["its search begins in 1 of 2 runs"]), ("curve", [])])
def test_it_is_said_in_how_many_runs_a_search_began(layout: str, said: list[str]) -> None:
    """Of recorded searches nobody knows."""
    cells = [{**ended("1", "auto", seed, layout=layout), "search": {"walks": 3}} for seed in (0, 1)]
    cells += [{**ended("1", "gradient", seed, layout=layout), "search": {"walks": seed}} for seed in (0, 1)]
    rows = {row["text"]: row for row in evaluated(cells)}
    ours = rows["time to within 5% of the lowest latency that any method reached, each method's over auto's"]
    assert ours["notes"] == {f"gradient ({layout})": said}
