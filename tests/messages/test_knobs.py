"""Knobs are told in few bytes, and read as what they are."""

from __future__ import annotations

import json
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.messages import knobs
from workers.messages.knobs import LARGEST, MOST, option, told


def tilings(extent: int, parts: int, innermost: int) -> list[tuple[int, ...]]:
    """All of them, as anybody would look for them."""
    divisors = [number for number in range(1, extent + 1) if extent % number == 0]
    found = (factors for factors in product(divisors, repeat=parts) if prod(factors) == extent)
    return sorted(factors for factors in found if factors[-1] <= innermost)


def check_tilings(extent: int, parts: int, innermost: int) -> None:
    options = tilings(extent, parts, innermost)
    knob = json.loads(json.dumps(told("tile0", "tile", options)))
    assert set(knob) == {"name", "kind", "extent", "parts", "innermost"}
    assert [option(knob, choice) for choice in range(len(options))] == options
    assert option(knob, len(options)) is None
    assert option(knob, -1) is None


@settings(deadline=None)
@given(st.integers(1, 48), st.integers(1, 4), st.integers(1, 48))
def test_every_choice_of_a_tile_is_read_as_it_was_told(extent: int, parts: int, innermost: int) -> None:
    if tilings(extent, parts, innermost):
        check_tilings(extent, parts, innermost)


@pytest.mark.mutation
def test_a_tile_read_without_its_innermost_limit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = knobs._ways
    monkeypatch.setattr(knobs, "_ways", lambda extent, parts, innermost: ways(extent, parts, extent))
    with pytest.raises(AssertionError):
        check_tilings(64, 4, 8)


@pytest.mark.parametrize(
    "options",
    [
        [(2, 2)],  # the trace's own, where no tiling is allowed
        [(1, 4), (4, 1)],  # not all of them
        [(4, 1), (2, 2), (1, 4)],  # in another order
        [(1, 4), (2, 3)],
        [(2 * LARGEST, 1)],
    ],
)
def test_what_is_no_rule_is_listed(options: list[tuple[int, ...]]) -> None:
    knob = told("tile0", "tile", options)
    assert "options" in knob
    assert [option(knob, choice) for choice in range(len(options))] == options


def test_single_numbers_are_listed_as_such() -> None:
    knob = told("parallel", "category", ((1,), (16,), (64,)))
    assert knob == {"name": "parallel", "kind": "category", "options": [1, 16, 64]}
    assert [option(knob, choice) for choice in (0, 2, 3)] == [(1,), (64,), None]


def test_a_long_list_is_left_out() -> None:
    knob = told("odd", "category", [(number,) for number in range(MOST + 1)])
    assert knob == {"name": "odd", "kind": "category"}
    assert option(knob, 3) is None


@pytest.mark.parametrize(
    "made_up", [{"extent": 1 << 60, "parts": 4}, {"extent": 720720, "parts": 9}, {"extent": 0, "parts": 1}]
)
def test_what_would_take_long_is_not_read(made_up: dict[str, Any]) -> None:
    assert option({"name": "tile0", "kind": "tile", "innermost": 64, **made_up}, 1) is None
