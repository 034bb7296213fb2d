"""Where a chart that the server draws has what."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from apps.dashboard.plot import BETWEEN, Plot, apart, monotone, stepped
from apps.dashboard.templatetags.human import spark


def test_time_goes_right_and_a_lower_latency_stands_lower() -> None:
    plot = Plot.around(60.0, [1e-3, 4e-3])
    assert [plot.x(clock) for clock in (0.0, 30.0, 60.0)] == [plot.left, (plot.left + plot.right) / 2, plot.right]
    assert plot.top < plot.y(4e-3) < plot.y(2e-3) < plot.y(1e-3) < plot.bottom
    # On a logarithmic scale twice is twice anywhere.
    assert plot.y(1e-3) - plot.y(2e-3) == pytest.approx(plot.y(2e-3) - plot.y(4e-3))


def test_what_lies_beyond_is_drawn_at_the_edge() -> None:
    plot = Plot.around(60.0, [1e-3, 4e-3])
    assert (plot.y(-1.0), plot.y(0.0), plot.y(1.0)) == (plot.bottom, plot.bottom, plot.top)
    assert plot.x(61.0) == plot.right


@pytest.mark.parametrize("latencies", [[], [0.0], [-1.0, 0.0], [2e-3], [2e-3, 2e-3]])
def test_any_latencies_make_a_scale(latencies: list[float]) -> None:
    plot = Plot.around(0.0, latencies)
    assert plot.top <= plot.y(2e-3) <= plot.bottom
    assert plot.x(0.0) == plot.left
    assert plot.times() == [(plot.left, "0")]
    assert plot.latencies()


@pytest.mark.parametrize("end", [0.3, 0.9, 7.0, 100.0, 3600.0, 90_000.0, 40 * 86_400.0])
def test_times_on_the_axis_are_round_and_not_crowded(end: float) -> None:
    plot = Plot.around(end, [1e-3])
    places = [place for place, _ in plot.times()]
    assert 2 <= len(places) <= 8
    assert all(right - left >= 80 for left, right in pairwise(places))


@pytest.mark.parametrize(
    ("low", "high"), [(1e-3, 1.01e-3), (2.19e-3, 4.3e-3), (1e-3, 1e-2), (3e-6, 0.25), (1e-9, 10.0), (5e-4, 5e-4)]
)
def test_latencies_on_the_axis_are_several_and_told_apart(low: float, high: float) -> None:
    plot = Plot.around(60.0, [low, high])
    places, words = zip(*plot.latencies(), strict=True)
    assert 3 <= len(words) <= 8
    assert len(set(words)) == len(words)
    assert all(above - below >= 14 for above, below in pairwise(places))
    assert plot.top <= places[-1] <= places[0] <= plot.bottom


def test_a_step_line_keeps_its_value_until_there_is_another() -> None:
    assert stepped([(1.0, 9.0), (2.0, 5.0), (3.0, 4.0)]) == [(1.0, 9.0), (2.0, 9.0), (2.0, 5.0), (3.0, 5.0), (3.0, 4.0)]
    assert stepped([]) == []


def test_words_are_pushed_apart_and_stay_in_their_order() -> None:
    found = apart([100.0, 99.0, 300.0, 301.0, 302.0], 310.0)
    assert found[1] < found[0] < found[2] < found[3] < found[4] <= 310.0
    assert all(below - above >= BETWEEN for above, below in pairwise(sorted(found)))
    assert apart([50.0, 200.0], 310.0) == [50.0, 200.0]
    assert apart([], 310.0) == []


@pytest.mark.parametrize(
    ("figures", "again", "over"),
    [
        ([5, 4, 3], [], False),
        ([5, 3, 4], [(2, 4)], True),
        ([5, 3, 4, 4.5, 4.5], [(3, 4.5)], True),
        ([5, 3, 4, 3], [(2, 4)], False),
        ([5, 3, 4, 2, 3, 3, 1], [(2, 4), (4, 3)], False),
        ([], [], False),
    ],
)
def test_a_line_never_rises_and_keeps_what_was_measured_again_apart(
    figures: list[float], again: list[Any], over: bool
) -> None:
    line, corrected, above = monotone(list(enumerate(figures)))
    heights = [y for _, y in line]
    assert heights == sorted(heights, reverse=True)
    assert [x for x, _ in line] == list(range(len(figures)))
    assert (corrected, above) == (again, over)


def test_a_small_curve_never_rises_either() -> None:
    drawn = spark([(0.0, 3e-3), (1.0, 1e-3), (2.0, 2e-3)])
    points = drawn.split('points="')[1].split('"')[0].split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == sorted(heights)
    assert heights[0] < heights[-1]
