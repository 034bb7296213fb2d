"""Rows that an earlier version wrote."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps

from apps.tuning import live, services
from tests.apps.rows import Site
from workers.messages.orders import REPEATED


def test_runs_of_before_are_told_by_the_figures_that_are_believed(site: Site) -> None:
    run, held, told = site.claimed(2)
    rows: list[dict[str, Any]] = [
        told.measurement(0, seconds, choices=[n]) for n, seconds in enumerate((0.3, 0.4, 0.5))
    ]
    rows += [told.measurement(0, 0.6, choices=[1], round=1), told.measurement(1, 0.2)]
    services.write(held, [told.event("batch", slot=1, measurements=rows, spent={}, latency=None, trials=5, failures=0)])
    run.refresh_from_db()
    now = run.latency
    run.operators.filter(index=0).update(best_seconds=0.3)
    type(run).objects.filter(pk=run.pk).update(latency=0.5)
    import_module("apps.tuning.migrations.0009_believed").retell(apps, None)
    run.refresh_from_db()
    assert [operator.best_seconds for operator in run.operators.order_by("index")] == [0.6, 0.2]
    assert run.latency == now == live.snapshot(run)["curve"][-1][1]


def test_operators_of_before_are_given_up_by_programs_that_had_failed(site: Site) -> None:
    run, held, told = site.claimed(1)
    rows = [told.measurement(0, None)] + [told.measurement(0, None, cause="duplicate") for _ in range(REPEATED)]
    services.write(held, [told.event("batch", slot=1, measurements=rows, spent={}, latency=None, trials=1, failures=1)])
    run.operators.update(repeated=0)
    assert not run.operators.get().given_up
    import_module("apps.tuning.migrations.0015_repeated").count(apps, None)
    assert run.operators.get().given_up
