from __future__ import annotations

import pytest

from workers.benchmarks.interval import Interval, median


def test_the_interval_holds_the_median_and_shrinks_with_agreement() -> None:
    wide, narrow = Interval.of([1.0, 2.0, 3.0, 4.0, 5.0]), Interval.of([3.0] * 5)
    assert (wide.median, wide.bounds) == (3.0, (1.0, 5.0))
    assert narrow.bounds == (3.0, 3.0)
    assert Interval.of([1.0, 2.0, 3.0, 4.0, 5.0]) == wide


def test_between_a_ratio_and_never_lies_nothing() -> None:
    """0 is the ratio of what never came: half of 3 is no run's. Of bounds neither, which are of such medians."""
    assert Interval.of([0.0, 0.0, 3.0, 3.0]).median == 0.0
    assert Interval.of([0.0, 3.0, 3.0, 3.0]).median == 3.0
    assert Interval.of([0.0] * 5 + [3.0] * 5) == Interval(0.0, (0.0, 3.0), 10)
    assert median([[0.0, 2.0], [1.0, 2.0]]).tolist() == [0.0, 1.5]


def test_a_share_of_0_is_a_share_as_any_other() -> None:
    assert Interval.of([0.0, 0.4], share=True).median == 0.2
    assert Interval.of([0.0] * 5 + [0.4] * 5, share=True) == Interval(0.2, (0.0, 0.4), 10)


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "1.00 (n = 1)"), (4, "2.50 (n = 4)"), (5, "3.00 [1.00, 5.00]")],
)
def test_a_few_values_bound_nothing_and_say_how_few_they_are(count: int, said: str) -> None:
    assert str(Interval.of([float(value) for value in range(1, count + 1)])) == said
