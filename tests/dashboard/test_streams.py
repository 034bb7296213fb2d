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
