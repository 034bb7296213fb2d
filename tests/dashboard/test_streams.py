"""What a spreadsheet makes of a downloaded table."""

from __future__ import annotations

import csv

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.dashboard import streams
from apps.tuning import live
from apps.tuning.models import Slot
from tests.apps.rows import Site


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1+1", "\r\n@SUM(A1)", "  =1+1"])
def test_a_text_that_looks_like_a_formula_is_quoted(text: str) -> None:
    assert streams._cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["conv2d", "", None, -1.5, "1=1"])
def test_anything_else_stays_what_it_is(value: object) -> None:
    assert streams._cell(value) == value


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_an_end_of_a_line_within_a_cell_begins_no_other_cell(end: str) -> None:
    assert streams.as_csv([[f"a{end}=1+1", "b"]]) == f'"a{end}=1+1",b\r\n'


def test_of_a_long_run_every_slot_is_told_a_page_at_a_time(site: Site) -> None:
    """Of more than a page draws; none of what was decided, which is far more, is read."""
    run, _, _ = site.claimed(2)
    count = live.SLOTS + 500
    Slot.objects.bulk_create(
        Slot(run=run, seq=n, number=n, operator=n % 3, began=n - 1.0, ended=n, trials=16, rule="belief",
             before=None if n < 4 else 0.5, after=0.25)
        for n in range(1, count + 1)
    )  # fmt: skip
    with CaptureQueriesContext(connection) as asked:
        pieces = [piece.decode() for piece in streams.slot_table(run)]
    read = [query["sql"] for query in asked if '"tuning_slot"' in query["sql"]]
    assert len(read) == len(pieces) == count // streams.ROWS + 2
    assert all(f"LIMIT {streams.ROWS}" in one and "decision" not in one for one in read)
    rows = list(csv.DictReader("".join(pieces).splitlines()))
    assert [int(row["slot"]) for row in rows] == list(range(1, count + 1))
    assert rows[0] == {
        "slot": "1", "operator": "1", "name": "conv_1", "began_s": "0.0", "ended_s": "1.0", "before_s": "",
        "after_s": "0.25", "tried": "16", "why": "belief",
    }  # fmt: skip
    assert rows[1]["name"] == "", "nobody listed it"
