"""Rows of the first page, which asks for them every few seconds."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.dashboard import figures
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
