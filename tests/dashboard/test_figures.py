"""Rows of the first page, which asks for them every few seconds."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.dashboard import figures
from apps.tuning import services
from apps.tuning.models import Slot, TuningRun
from tests.apps.rows import Site
from workers.messages.spec import Budget

SLOTS = 1000


def test_of_a_long_run_no_more_is_read_than_is_drawn(site: Site) -> None:
    short, run = site.run(), site.run()
    Slot.objects.bulk_create(
        Slot(
            run=run, seq=number, number=number, operator=0, began=number - 1.0, ended=number, trials=1, rule="x",
            latency=None if number < 10 else 1.0 / number,
        )
        for number in range(1, SLOTS + 1)
    )  # fmt: skip
    TuningRun.objects.filter(pk=run.pk).update(slots_count=SLOTS)
    runs = list(TuningRun.objects.filter(pk__in=[short.pk, run.pk]).select_related("job").order_by("created"))
    with CaptureQueriesContext(connection) as asked:
        empty, row = figures.rows(runs)
    read = []
    for query in (query for query in asked if '"tuning_slot"' in query["sql"]):
        with connection.cursor() as cursor:
            cursor.execute(query["sql"])
            read.append(len(cursor.fetchall()))
    assert (len(read), sum(read)) == (1, figures.SPARK)
    assert empty.spark == []
    assert row.spark[-1] == (SLOTS, 1.0 / SLOTS)
    assert all(latency == 1.0 / ended for ended, latency in row.spark)
    assert len(row.spark) > figures.SPARK - 3


def test_a_ratio_is_called_one_of_the_sum_until_the_network_was_verified(site: Site, ada: Client) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])  # 4 ms + 2 x 3 ms
    rows = TuningRun.objects.filter(pk=run.pk)
    rows.update(baselines=[{"name": "ONNX Runtime", "seconds": 0.02, "spread": 0.0, "threads": 2}])
    report = reverse("run-file", args=[run.pk, "report.html"])
    for whole in ([], [{"clock": 1.0, "seconds": 0.005, "verified": False}]):
        rows.update(end_to_end=whole)
        page = ada.get("/").content.decode()
        assert 'soft"><span class="brief">2.00 x<' in page
        assert '<span class="second">operators alone</span>' in page
        assert "than ONNX Runtime, operators alone" in b"".join(ada.get(report)).decode()
    rows.update(end_to_end=[{"clock": 2.0, "seconds": 0.005, "verified": True}])
    page = ada.get("/").content.decode()
    assert "4.00 x" in page
    assert "sum of operators" not in page
    assert "operators alone" not in page
    assert "<dt>than ONNX Runtime</dt><dd>4.00 x faster</dd>" in b"".join(ada.get(report)).decode()
    rows.update(end_to_end=[{"clock": 2.0, "seconds": 0.025, "verified": True}])
    page = ada.get("/").content.decode()
    assert 'warn" title="Slower"><span class="brief">0.800 x</span><span class="unit">1.25 x slower than' in page
    assert '<dt>than ONNX Runtime</dt><dd class="warn">1.25 x slower</dd>' in b"".join(ada.get(report)).decode()


def test_ratios_of_a_list_are_of_the_library_where_there_is_one(site: Site, ada: Client) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004), told.batch(0.003, operator=1)])  # 4 ms + 2 x 3 ms
    whole = {"clock": 2.0, "seconds": 0.012, "latency": 0.010, "spread": 0.0, "verified": True}
    lines = [{"name": name, "seconds": seconds} for name, seconds in (("ONNX Runtime", 0.024), ("TVM untuned", 0.12))]
    TuningRun.objects.filter(pk=run.pk).update(end_to_end=[whole], baselines=lines)

    def shown() -> tuple[float | None, bool, float | None, float | None]:
        (row,) = figures.rows(TuningRun.objects.select_related("job").filter(pk=run.pk))
        return row.latency, row.of_sum, row.over_onnxruntime, row.over_untuned

    assert shown() == (0.012, False, 2.0, 10.0)
    services.write(held, [told.batch(0.001, operator=1)])
    assert shown() == pytest.approx((0.006, True, 2.0, 10.0))
    page = ada.get(reverse("home")).content.decode()
    assert page.count('<span class="second">the library</span>') == 2


def test_only_what_runs_has_time_left_and_what_waits_says_how_many_come_first(site: Site) -> None:
    run, _, _ = site.claimed()
    first, second = site.run(budget=Budget(seconds=60)), site.run(budget=Budget(seconds=60))
    rows = {row.run.pk: row for row in figures.rows(TuningRun.objects.select_related("job"))}
    assert [rows[key.pk].word for key in (run, first, second)] == ["running", "waiting, 1 before", "waiting, 2 before"]
    assert (rows[first.pk].eta, rows[second.pk].eta) == (None, None)
    services.claim(first.job_id)
    (row,) = figures.rows(TuningRun.objects.select_related("job").filter(pk=first.pk))
    assert (row.word, row.eta) == ("running", 60.0)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Budget(min_gain=0.0025), "until a gain under 0.25 % is expected"),
        (Budget(min_gain=0.0005), "until a gain under 0.05 % is expected"),
        (Budget(seconds=90, target_latency=12.3456e-3), "1 min 30 s, until 12.3456 ms"),
        (Budget(trials=4000, target_latency=2e-5), "4\u202f000 configurations, until 0.02 ms"),
    ],
)
def test_limits_are_told_as_they_were_entered(site: Site, limits: Budget, text: str) -> None:
    assert figures.budget(site.run(budget=limits)) == text
