"""Rounds in a run: the latest figure counts everywhere, and a resumed run is the run that never stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.simulated_run import OPERATORS, Simulation, Wish, kept, simulated
from workers.engine.methods import Method, method
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration
from workers.landscapes import SimulatedClock
from workers.messages.orders import best_of
from workers.pipeline.books import Books

TRIALS = 240
NAMED = [{"index": operator.index, "key": operator.key} for operator in OPERATORS]


def adatune(share: float = 1.0) -> Method:
    """A preset's parts, with more rounds than a preset gives."""
    search = {"confirm": share, "contextual": True, "acquisition": "expected_improvement"}
    chosen = replace(method("round_robin"), cost_model="random_forest", evaluator="adaptive")
    return replace(chosen, parameters={"search": search, "explorer": {"chains": 32, "steps": 40}})


def played(**fields: Any) -> Simulation:
    return simulated(trials=TRIALS, chosen=adatune(), **fields)


def test_the_latency_told_is_of_the_latest_figures_and_the_artifact_is_made_of_the_same() -> None:
    run = played()
    assert sum(m["round"] > 0 for m in run.measurements) >= 4
    best = best_of(run.measurements, NAMED)
    told = sum(operator.weight * best[str(operator.index)]["seconds"] for operator in OPERATORS)
    assert run.events[-1]["latency"] == pytest.approx(told)


def test_a_round_is_told_side_by_side_with_its_rivals_and_once() -> None:
    found = played().measurements
    again = [place for place, m in enumerate(found) if m["round"] > 0]
    assert all(second == first + 1 for first, second in zip(again[::2], again[1::2], strict=True))
    rows = [(m["operator"], m["sketch"], *m.get("asked", m["choices"]), m["round"]) for m in found]
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("pause_after", [5, 12])
def test_paused_and_resumed_measures_what_the_whole_run_measures(tmp_path: Path, pause_after: int) -> None:
    whole, first = played(), played(wish=Wish("pause", pause_after))
    second = played(history=kept(tmp_path, first.lines))

    def sequence(found: list[dict[str, Any]]) -> list[Any]:
        return [(m["operator"], m["choices"], m["round"], m["seconds"]) for m in found]

    assert sequence(first.measurements + second.measurements) == sequence(whole.measurements)
    assert second.report["search"] == whole.report["search"]
    assert second.events[-1]["latency"] == whole.events[-1]["latency"]


def test_the_report_tells_how_much_was_left_to_chance() -> None:
    search = played().report["search"]
    assert 0 < search["chance"] < search["steered"]
    assert search["confirm"] > 0


def test_a_curve_was_never_below_what_is_true_now() -> None:
    books = Books(OPERATORS[:1], {}, SimulatedClock())
    told = [(1, 0, 9.0), (2, 0, 5.0), (3, 0, 4.0), (4, 0, 6.0), (3, 1, 5.5), (2, 1, 5.2)]
    for number, at, seconds in told:
        candidate = Candidate(0, Configuration(0, (number,)), "explorer", at)
        books.observe([Outcome(candidate, candidate.configuration, str(number), seconds)])
    assert books.best == [5.2]
    assert books.curves == [[9.0, 5.2, 5.2, 5.2]]
    assert (books.trials, books.failures) == (6, 0)
