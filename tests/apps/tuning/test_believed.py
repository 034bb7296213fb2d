"""One list of measurements through all that tell an operator's best from it: they say the same after every one."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tuning import live, orders, services
from tests.apps.rows import Site
from workers.benchmarks.tally import Tally
from workers.engine.history import History
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration, Knob, Operator, Sketch
from workers.landscapes import SimulatedClock
from workers.messages.believed import Believed
from workers.messages.known import points_of
from workers.messages.orders import best_of
from workers.pipeline.books import Books

KNOB = Knob("n", "category", tuple((n,) for n in range(8)))
OPERATOR = Operator(0, "operator0", "k0", 1, 1e6, 1e6, 1e6, (Sketch((KNOB,)),), ())
NAMED = [{"index": 0, "key": "k0"}]
Told = tuple[int, float | None]
"""A configuration and its seconds, None where it failed; rounds are counted."""


def measurements(told: Sequence[Told]) -> Iterator[dict[str, Any]]:
    rounds: dict[int, int] = {}
    for number, seconds in told:
        if number not in rounds and seconds is None:
            continue  # what never ran is not measured again
        at = rounds[number] = rounds.get(number, -1) + 1
        yield {
            "operator": 0, "sketch": 0, "choices": [number], "identity": f"i{number}", "round": at, "seconds": seconds,
            "spread": 0.0, "runs": 3, "stopped": "", "cause": "" if seconds else "crash", "error": "",
            "build_seconds": 0.1, "measure_seconds": 0.01, "origin": "explorer",
        }  # fmt: skip


def believed(rows: Sequence[dict[str, Any]]) -> float:
    """The rule, spelled out: what came after the last later round, and the latest of what was measured in such rounds."""
    ran = [(place, row["choices"][0], row["round"], row["seconds"]) for place, row in enumerate(rows) if row["seconds"]]
    last = max((place for place, _, at, _ in ran if at), default=-1)
    counts = [
        one for one in ran if one[0] > last or (one[2] and not any(o[1] == one[1] and o[2] > one[2] for o in ran))
    ]
    return min((seconds for *_, seconds in counts), default=math.inf)


def outcome(row: dict[str, Any]) -> Outcome:
    candidate = Candidate(0, Configuration(0, tuple(row["choices"])), "explorer", row["round"])
    return Outcome(candidate, candidate.configuration, row["identity"], row["seconds"], cause=row["cause"])


class Everyone:
    """All that fold a run's measurements, but for the database."""

    def __init__(self) -> None:
        self.books, self.history = Books([OPERATOR], {}, SimulatedClock()), History(OPERATOR)
        self.tally = Tally([{"name": "a", "weight": 1}])
        self.rows: list[dict[str, Any]] = []

    def hear(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self.books.observe([outcome(row)])
        self.history.add(outcome(row))
        self.tally.hear({"kind": "batch", "clock": float(len(self.rows)), "measurements": [row]})

    def seconds(self) -> set[float]:
        """What they say; one value where they agree."""
        best = best_of(self.rows, NAMED).get("0", {}).get("seconds", math.inf)
        points = min((point[2] for point in points_of(self.rows) if point[2] is not None), default=math.inf)
        history = math.inf if self.history.best is None else self.history.best.seconds
        return {
            best,
            self.books.best[0],
            self.books.curves[0][-1],
            history,
            self.tally.figures()["latency"] or math.inf,
            points,
        }


LISTS = st.lists(
    st.tuples(st.integers(0, 4), st.none() | st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0])), min_size=1, max_size=12
)


@given(LISTS)
def test_all_who_tell_a_best_tell_the_same(told: list[Told]) -> None:
    everyone = Everyone()
    for row in measurements(told):
        everyone.hear(row)
        assert everyone.seconds() == {believed(everyone.rows)}, everyone.rows
        assert everyone.books.curves[0] == sorted(everyone.books.curves[0], reverse=True)


@pytest.mark.parametrize("seed", range(6))
def test_the_site_tells_it_too(site: Site, seed: int) -> None:
    drawn_from = random.Random(seed)
    told = [(drawn_from.randrange(5), drawn_from.choice([None, 1.0, 2.0, 3.0, 4.0, 5.0])) for _ in range(12)]
    everyone = Everyone()
    run, held, said = site.claimed(1)
    for row in measurements(told):
        everyone.hear(row)
        event = said.event("batch", slot=1, measurements=[row], spent={}, latency=None, trials=0, failures=0)
        services.write(held, [event])
        (expected,) = everyone.seconds()
        assert (run.operators.get().best_seconds or math.inf) == expected
        assert orders.best(run).get("0", {}).get("seconds", math.inf) == expected
        drawn = live.snapshot(run)
        assert (drawn["curve"][-1][1] if drawn["curve"] else math.inf) == expected


CURSED = [(0, 3.0), (1, 1.0), (2, 1.5), (1, 2.0), (2, 1.8), (3, 1.9), (4, 1.7)]


def test_what_was_not_measured_again_counts_no_longer() -> None:
    everyone, said = Everyone(), list[set[float]]()
    for row in measurements(CURSED):
        everyone.hear(row)
        said.append(everyone.seconds())
    assert said == [{3.0}, {1.0}, {1.0}, {2.0}, {1.8}, {1.8}, {1.7}]


@pytest.mark.mutation
def test_one_who_believes_every_figure_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Believed.add
    monkeypatch.setattr(
        Believed, "add", lambda self, configuration, seconds, _round: add(self, configuration, seconds, 0)
    )
    everyone = Everyone()
    for row in measurements(CURSED):
        everyone.hear(row)
    assert everyone.seconds() != {1.7}
