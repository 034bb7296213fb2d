"""A run folded into figures: what another round corrected was never reached, and nothing else moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workers.benchmarks import ours
from workers.benchmarks.tally import Tally, retold

FREE = {"build_seconds": 0.0, "measure_seconds": 0.0}


def tallied(*told: tuple[int, float | None], truth: Callable[[dict[str, Any]], float] | None = None) -> dict[str, Any]:
    """Figures of `heard`."""
    return heard(*told, truth=truth).figures()


def heard(*told: tuple[int, float | None], truth: Callable[[dict[str, Any]], float] | None = None) -> Tally:
    """Of one operator of weight 2, a measurement a second: (configuration, seconds), None for a duplicate."""
    tally = Tally([{"name": "a", "weight": 2}], truth)
    for clock, (number, seconds) in enumerate(told, 1):
        measurement = {
            "operator": 0, "sketch": 0, "choices": [number], "seconds": seconds,
            "cause": "" if seconds else "duplicate", "round": sum(n == number for n, _ in told[: clock - 1]), **FREE,
        }  # fmt: skip
        tally.hear({"kind": "batch", "clock": float(clock), "measurements": [measurement]})
    return tally


def test_a_tally_tells_the_truth_about_lucky_measurements() -> None:
    found = tallied((0, 4.0), (1, 1.0), truth=lambda m: 5.0 if m["seconds"] == 1.0 else m["seconds"])
    assert found["curve"] == [[1.0, 10.0]]
    assert found["latency"] == 10.0


CONFIRMED = ((0, 6.0), (1, 3.0), (1, 5.0), (2, None), (0, 4.0))


def test_a_tally_follows_the_figure_that_a_later_round_corrected() -> None:
    before, after, other = tallied(*CONFIRMED[:2]), tallied(*CONFIRMED[:3]), tallied(*CONFIRMED)
    assert (before["curve"], before["latency"]) == ([[1.0, 12.0], [2.0, 6.0]], 6.0)
    assert (after["curve"], after["latency"]) == ([[1.0, 12.0], [2.0, 10.0]], 10.0)
    assert (other["curve"], other["latency"]) == ([[1.0, 12.0], [2.0, 10.0], [5.0, 8.0]], 8.0)
    assert other["operators"][0]["series"] == [[1, 1.0, 0, 6.0], [2, 2.0, 0, 5.0], [4, 5.0, 0, 4.0]]
    assert other["trials"] == 4


def held(*told: tuple[int, float | None]) -> tuple[dict[str, Any], list[list[Any]]]:
    """Figures of `tallied` with what was held, and that."""
    tally = heard(*told)
    figures = tally.figures()
    for row, found in zip(figures["operators"], tally.bests(), strict=True):
        row["bests"] = found
    return figures, figures["operators"][0]["bests"]


def test_what_was_held_is_told_from_when_on_it_was_the_best() -> None:
    figures, found = held((0, 6.0), (1, 7.0), (2, 5.0), (2, 8.0), (0, 6.5))
    assert [(row[0], row[-1]) for row in found] == [(1.0, "0 0"), (3.0, "0 2"), (5.0, "0 0")]
    assert figures["curve"] == [[1.0, 16.0], [5.0, 13.0]], "what was held for a while took 8, and nobody knew"
    figures, found = held((0, 6.0), (1, 3.0), (2, None), (3, 2.0))
    assert [(row[0], row[-1]) for row in found] == [(1.0, "0 0"), (2.0, "0 1"), (4.0, "0 3")]
    again = retold(figures, [[6.0, 3.0, 2.0]])
    assert again == figures
    other = retold(figures, [[4.0, 1.0, 1.5]])
    assert (other["curve"], other["latency"]) == ([[1.0, 8.0], [2.0, 3.0]], 3.0)
    assert other["operators"][0]["best"] == 1.5


@pytest.mark.mutation
def test_a_tally_that_keeps_lucky_figures_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Tally._measurement
    told: dict[int, float] = {}

    def luckiest(self: Tally, measurement: dict[str, Any]) -> None:
        place = measurement["choices"][0]
        if measurement["seconds"]:
            told[place] = min(told.get(place, measurement["seconds"]), measurement["seconds"])
            measurement = {**measurement, "seconds": told[place]}
        measured(self, measurement)

    monkeypatch.setattr(Tally, "_measurement", luckiest)
    assert tallied(*CONFIRMED[:3])["latency"] == 6.0


def batch(clock: float, operator: int, number: int, seconds: float, at: int = 0) -> dict[str, Any]:
    measurement = {
        "operator": operator, "sketch": 0, "choices": [number], "seconds": seconds, "cause": "", "round": at, **FREE,
    }  # fmt: skip
    return {"kind": "batch", "clock": clock, "measurements": [measurement], "failures": 0}


TWO = [{"name": name, "key": name, "weight": 1} for name in "ab"]
BETWEEN = [
    batch(1.0, 0, 0, 6.0), batch(1.5, 1, 0, 3.0),
    batch(2.0, 0, 1, 1.0),  # luck: it takes 5
    batch(3.0, 1, 1, 1.0),
    batch(4.0, 0, 1, 5.0, at=1),
]  # fmt: skip


def test_a_correction_moves_no_improvement_of_another_operator() -> None:
    tally = Tally(TWO)
    for event in BETWEEN:
        tally.hear(event)
    assert tally.figures()["curve"] == [[1.5, 9.0], [2.0, 8.0], [3.0, 6.0]]
    started = {"kind": "started", "layout": "NHWC"}
    finished = {"kind": "finished", "clock": 5.0, "latency": 6.0, "trials": 5, "reason": "trials"}
    events = [started, {"kind": "operators", "operators": TWO}, *BETWEEN, finished]
    assert ours._figures(events, finished)["curve"] == [[1.5, 9.0], [2.0, 8.0], [3.0, 6.0]]


def test_a_correction_moves_no_improvement_by_another_configuration() -> None:
    found = tallied((0, 6.0), (1, 1.0), (2, 3.0), (1, 5.0), (2, 3.0))
    assert found["curve"] == [[1.0, 12.0], [2.0, 10.0], [5.0, 6.0]]


def told_slots(*slots: tuple[float, float, float], failures: int = 0) -> dict[str, Any]:
    """Figures of slots (before, after, low_ms) of one operator; each measures two programs after so many failures."""
    tally, number = Tally([{"name": "a", "weight": 1}]), 0
    for before, after, low in slots:
        measured = []
        for seconds in (*[None] * failures, before, after):
            number += 1
            cause = "" if seconds else "duplicate"
            one = {"operator": 0, "sketch": 0, "choices": [number], "seconds": seconds, "cause": cause, "round": 0}
            measured.append({**one, **FREE})
        tally.hear({"kind": "batch", "clock": float(number), "measurements": measured})
        belief = {"x": [2, 4, 6], "mean_ms": [low] * 3, "low_ms": [low, low - 0.1, low - 0.2]}
        slot = {"operator": 0, "before": before, "after": after, "trials": 2, "decision": {"belief": belief}}
        tally.hear({"kind": "slot", **slot})
    return tally.figures()


def test_a_tally_counts_the_slots_that_ended_where_it_was_told() -> None:
    """In the second slot 4 configurations are known: 0.1 ms less than at 2 is still inside."""
    found = told_slots((9e-3, 9e-3, 8.0), (9e-3, 7.95e-3, 8.0), (7.95e-3, 5e-3, 6.0))
    assert (found["foretold"], found["held"]) == (3, 2)
    # Duplicates are no configurations: 0.2 ms less is told of more than there are.
    assert told_slots((9e-3, 9e-3, 8.0), (9e-3, 7.85e-3, 8.0), failures=5)["held"] == 1


def test_a_tally_counts_what_the_belief_decided_and_what_round_robin_would_not_have() -> None:
    tally = Tally([{"name": "a", "weight": 1}])
    for decided, differs in ((True, True), (False, True), (False, False), (True, False)):
        decision = {"decided_by_belief": decided, "differs_from_round_robin": differs}
        tally.hear({"kind": "slot", "operator": 0, "before": None, "after": None, "trials": 0, "decision": decision})
    found = tally.figures()
    assert (found["slots"], found["decided_by_belief"], found["differs_from_round_robin"]) == (4, 2, 2)
    assert found["belief_differs"] == 1


def test_a_tally_tells_intervals_without_width_and_slots_that_gained() -> None:
    """Of a best in six digits; in the third slot 4 % were expected and 2 % came, in the fourth nothing was and 2 % came."""
    found = told_slots((9e-3, 9e-3, 9.0), (9e-3, 9e-3, 8.9), (9e-3, 8.8e-3, 8.6), (8.8e-3, 8.6e-3, 9.1))
    assert [found[name] for name in ("foretold", "held", "without_width", "gained", "gained_held")] == [4, 3, 2, 2, 1]


@pytest.mark.parametrize(("costs", "seconds"), [((3.0, 1.0), (4.5, 1.5)), ((0.0, 0.0), (3.0, 3.0))])
def test_a_batch_of_several_operators_is_shared_by_what_each_took(
    costs: tuple[float, float], seconds: tuple[float, float]
) -> None:
    """Two programs of the slot's operator and a twin's best, in 6 s; duplicates alone cost nothing: then evenly."""
    tally = Tally(TWO)
    measured = [batch(0.0, operator, number, 1.0)["measurements"][0] for operator, number in ((0, 0), (0, 1), (1, 0))]
    for one, build, measure in zip(measured, (costs[0] / 2, 0.0, costs[1]), (0.0, costs[0] / 2, 0.0), strict=True):
        one.update(build_seconds=build, measure_seconds=measure)
    tally.hear({"kind": "batch", "clock": 6.0, "measurements": measured})
    assert tuple(row["seconds"] for row in tally.figures()["operators"]) == seconds


def test_a_tally_of_a_method_that_tells_nothing_counts_none() -> None:
    assert (tallied((0, 4.0))["foretold"], tallied((0, 4.0))["held"]) == (0, 0)
