"""A configuration measured in several rounds: the latest figure counts, on the page and in the artifact."""

from __future__ import annotations

from typing import Any

from apps.tuning import live, orders, services


def test_a_best_that_was_luck_loses_its_place_to_the_configuration_that_is_faster(site: Any) -> None:
    run, held, told = site.claimed(1)
    lucky, rival = told.measurement(0, 0.30, choices=[1, 2, 3]), told.measurement(0, 0.33, choices=[4, 5, 6])
    first = told.event("batch", slot=1, measurements=[rival, lucky], spent={}, latency=None, trials=2, failures=0)
    services.write(held, [first])
    assert run.operators.get().best_seconds == 0.30
    again = [{**lucky, "round": 1, "seconds": 0.36}, {**rival, "round": 1, "seconds": 0.34}]
    services.write(
        held, [told.event("batch", slot=2, measurements=again, spent={}, latency=None, trials=4, failures=0)]
    )
    run.refresh_from_db()
    assert run.operators.get().best_seconds == 0.34
    assert run.latency == 0.34
    assert run.trials == 4
    best = orders.best(run)["0"]
    assert (best["choices"], best["seconds"]) == ([4, 5, 6], 0.34)
    drawn = live.snapshot(run)
    assert [point[1] for point in drawn["curve"]][:2] == [0.30, 0.34]
    assert drawn["operators"][0]["spark"][-1] == [4, 0.34]


def test_a_round_that_failed_leaves_the_figure(site: Any) -> None:
    run, held, told = site.claimed(1)
    once = told.measurement(0, 0.3, choices=[1, 2, 3])
    rows = [once, {**once, "round": 1, "seconds": None, "cause": "timeout"}]
    services.write(held, [told.event("batch", slot=1, measurements=rows, spent={}, latency=None, trials=2, failures=1)])
    assert run.operators.get().best_seconds == 0.3
    assert orders.best(run)["0"]["seconds"] == 0.3
