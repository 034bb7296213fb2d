"""A run that is opened again: drawn as if for the first time, without all of it being read."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.tuning import live, services, walk
from apps.tuning.models import Job, TuningRun
from apps.tuning.paging import PAGE
from tests.apps.rows import Site, Told, measure
from tests.apps.threads import in_threads


def anew(run: TuningRun) -> dict[str, Any]:
    """Its snapshot as who opens it first has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "_walk_of", lambda _: walk.Walk())
        return live.snapshot(run)


def reads(run: TuningRun) -> int:
    """Pages of measurements that are read where it is opened."""
    with CaptureQueriesContext(connection) as asked:
        live.snapshot(run)
    return sum('FROM "tuning_measurement"' in query["sql"] for query in asked)


def measured(run: TuningRun, count: int) -> None:
    """So many measurements more, all of them steps."""
    job = Job.objects.get(pk=run.job_id)
    first = job.last_seq + 1
    measure(run, (
        {"seq": n, "operator": 0, "configuration": f"{n:032x}", "choices": [n], "seconds": 1 / n, "clock": float(n)}
        for n in range(first, first + count)
    ))  # fmt: skip
    Job.objects.filter(pk=job.pk).update(last_seq=first + count - 1)


def batches(told: Told, seed: int) -> Iterator[dict[str, Any]]:
    """Of two operators: what ran, failed, was the same program, and was measured again."""
    drawn_from, rounds = random.Random(seed), dict[int, int]()
    for _ in range(30):
        rows = []
        for _ in range(drawn_from.randrange(1, 5)):
            number = drawn_from.randrange(1000) if drawn_from.random() < 0.7 else drawn_from.randrange(4)
            ran = number in rounds or drawn_from.random() < 0.8
            changes = {"choices": [number], "round": rounds.get(number, 0)}
            changes |= (
                {}
                if ran
                else {"choices": [next(told.numbers), 0], "cause": drawn_from.choice(["timeout", "duplicate"])}
            )
            if ran:
                rounds[number] = rounds.get(number, 0) + 1
            rows.append(told.measurement(number % 2, drawn_from.uniform(0.1, 1.0) if ran else None, **changes))
        yield told.batch() | {"measurements": rows}


@pytest.mark.parametrize("seed", range(2))
def test_a_run_that_is_opened_again_is_drawn_as_if_for_the_first_time(
    site: Site, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(walk, "POINTS", 20)
    run, held, told = site.claimed(2)
    for batch in batches(told, seed):
        services.write(held, [batch])
        assert live.snapshot(run) == anew(run)


def test_of_a_run_that_is_opened_again_what_came_since_is_read(site: Site) -> None:
    run, _, _ = site.claimed(1)
    measured(run, 2 * PAGE)
    assert (reads(run), reads(run)) == (3, 1)
    measured(run, 5)
    assert reads(run) == 2
    assert len(live.snapshot(run)["operators"][0]["spark"]) == live.SPARK


def test_a_run_of_more_steps_than_are_kept_is_read_anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MOST", PAGE)
    run, _, _ = site.claimed(1)
    measured(run, 2 * PAGE)
    assert (reads(run), reads(run)) == (3, 3)


def test_what_broke_off_is_read_anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5, 0.4)])
    live.snapshot(run)
    services.write(held, [told.batch(0.3), told.batch(0.2)])

    def torn(rows: Any, *columns: str) -> Iterator[tuple[Any, ...]]:
        yield rows.values_list("seq", *columns).first()
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(walk, "by_number", torn)
        with pytest.raises(OSError, match="the disk is gone"):
            live.snapshot(run)
    assert live.snapshot(run) == anew(run)


@pytest.mark.django_db(transaction=True)
def test_who_opens_a_run_while_it_goes_on_has_all_up_to_its_number(data_dir: Any) -> None:
    run, held, told = Site().claimed(1)
    over = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            try:
                for _ in range(40):
                    services.write(held, [told.batch(0.5, 0.4)])
            finally:
                over.set()
        while not over.is_set():
            drawn = live.snapshot(run)
            told_of.append((drawn["run"]["trials"], len(drawn["points"]), drawn["operators"][0]["spark"]))

    told_of: list[tuple[int, int, list[Any]]] = []
    in_threads(4, work)
    assert len({trials for trials, *_ in told_of}) > 1
    assert all(trials == points for trials, points, _ in told_of)
    assert all(spark == ([[2, 0.4]] if trials else []) for trials, _, spark in told_of)
