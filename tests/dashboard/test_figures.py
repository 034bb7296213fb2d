"""Rows of the first page, which asks for them every few seconds."""

from __future__ import annotations

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.dashboard import figures
from apps.tuning import services
from apps.tuning.models import Slot, TuningRun
from tests.apps.rows import Site

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
    for query in asked:
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
        assert '2.00 x<span class="second">sum of operators</span>' in ada.get("/").content.decode()
        assert "against ONNX Runtime, sum of operators" in b"".join(ada.get(report)).decode()
    rows.update(end_to_end=[{"clock": 2.0, "seconds": 0.005, "verified": True}])
    page = ada.get("/").content.decode()
    assert "4.00 x" in page
    assert "sum of operators" not in page
    assert "against ONNX Runtime</dt>" in b"".join(ada.get(report)).decode()
