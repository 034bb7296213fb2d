"""What a spreadsheet makes of a downloaded table."""

from __future__ import annotations

import pytest

from apps.dashboard import streams


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1+1", "\r\n@SUM(A1)", "  =1+1"])
def test_a_text_that_looks_like_a_formula_is_quoted(text: str) -> None:
    assert streams._cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["conv2d", "", None, -1.5, "1=1"])
def test_anything_else_stays_what_it_is(value: object) -> None:
    assert streams._cell(value) == value


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_an_end_of_a_line_within_a_cell_begins_no_other_cell(end: str) -> None:
    assert streams.as_csv([[f"a{end}=1+1", "b"]]) == f'"a{end}=1+1",b\r\n'
