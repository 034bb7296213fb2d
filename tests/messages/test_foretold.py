"""What was told of a slot before it, read after it."""

from __future__ import annotations

from typing import Any

import pytest

from workers.messages.foretold import foretold

BELIEF = {"x": [10, 20, 40], "mean_ms": [9.0, 8.0, 6.0], "low_ms": [8.5, 7.0, 4.0]}


@pytest.mark.parametrize(
    ("configurations", "mean", "low"), [(5, 9.0, 8.5), (10, 9.0, 8.5), (15, 8.5, 7.75), (30, 7.0, 5.5), (99, 6.0, 4.0)]
)
def test_it_is_for_as_many_configurations_as_the_slot_came_to(configurations: int, mean: float, low: float) -> None:
    told = foretold(BELIEF, configurations, 10e-3)
    assert told is not None
    assert (1e3 * told.mean, 1e3 * told.low, told.before) == (pytest.approx(mean), pytest.approx(low), 10e-3)


def test_it_holds_from_the_least_time_to_the_time_before() -> None:
    told = foretold(BELIEF, 20, 8e-3)
    assert told is not None
    assert [told.holds(after) for after in (6.9e-3, 7e-3, 7.5e-3, 8e-3, 8.1e-3)] == [False, True, True, True, False]


def test_where_no_gain_is_expected_rounding_excludes_nothing() -> None:
    """The least time is told in six digits."""
    told = foretold({"x": [8], "mean_ms": [8.0], "low_ms": [8.00001]}, 8, 8.000009e-3)
    assert told is not None
    assert told.holds(8.000009e-3)


@pytest.mark.parametrize(
    ("belief", "configurations", "before"),
    [
        (None, 8, 1e-3), ({}, 8, 1e-3), (BELIEF, None, 1e-3), (BELIEF, 8, None),
        ({"x": [8], "mean_ms": [1.0], "spread_ms": [0.1]}, 8, 1e-3),
    ],
)  # fmt: skip
def test_nothing_is_read_where_nothing_was_told(belief: Any, configurations: int | None, before: float | None) -> None:
    assert foretold(belief, configurations, before) is None
