"""Numbers as people read them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from apps.dashboard import humans

ALIKE: list[tuple[str, tuple[Any, ...], str]] = [
    ("significant", (0.034,), "0.0340"),
    ("significant", (9.996,), "10.0"),
    ("significant", (999.6,), "1000"),
    ("significant", (1234.6,), "1230"),
    ("significant", (4.56, 2), "4.6"),
    ("significant", (0,), "0"),
    ("latency", (0.00278,), "2.78 ms"),
    ("latency", (0.0340e-3,), "34.0 µs"),
    ("latency", (1.5,), "1.50 s"),
    ("latency", (1234.6,), "1230 s"),
    ("latency", (9.996e-3,), "10.0 ms"),
    ("latency", (0.9999e-3,), "1.00 ms"),
    ("latency", (0.00278, 0.00003), "2.78 ms ± 0.03"),
    ("latency", (0.278, 0.003), "278 ms ± 3"),
    ("latency", (0.045, 0.01344), "45.0 ms ± 13.4"),
    ("latency", (0.000824, 0.00319176), "824 µs ± 3192"),
    ("latency", (0.123, 0.00047), "123 ms ± 0.5"),
    ("latency", (1.234, 0.004), "1.23 s ± 0.004"),
    ("latency", (0.4567, 2e-7), "457 ms ± 0.0002"),
    ("latency", (None,), "–"),
    ("given", (100 * 0.0025,), "0.25"),
    ("given", (100 * 0.0007,), "0.07"),
    ("given", (15,), "15"),
    ("duration", (200,), "3 min 20 s"),
    ("duration", (59.6,), "1 min"),
    ("duration", (2.5,), "3 s"),
    ("duration", (0,), "0 s"),
    ("duration", (3600,), "1 h"),
    ("duration", (7320,), "2 h 2 min"),
    ("duration", (0.234,), "0.23 s"),
    ("duration", (None,), "–"),
    ("ratio", (1.0612,), "1.06 x"),
    ("ratio", (12.34,), "12.3 x"),
    ("ratio", (1234.6,), "1230 x"),
    ("ratio", (0,), "–"),
    ("faster", (1.1512,), "1.15 x faster"),
    ("faster", (0.9524,), "1.05 x slower"),
    ("faster", (0.998,), "1.00 x faster"),
    ("faster", (0.5,), "2.00 x slower"),
    ("faster", (None,), "–"),
    ("whole", (999,), "999"),
    ("whole", (1234567,), "1\u202f234\u202f567"),
    ("whole", (98765432,), "98\u202f765\u202f432"),
    ("whole", (None,), "–"),
    ("percent", (0.1234,), "12.3 %"),
    ("percent", (1e-4,), "< 0.1 %"),
    ("percent", (0,), "0.0 %"),
    ("percent", (None,), "–"),
    ("size", (0,), "0 B"),
    ("size", (999,), "999 B"),
    ("size", (999.6,), "1.00 kB"),
    ("size", (4_960_000,), "4.96 MB"),
    ("size", (100e6,), "100 MB"),
    ("size", (2.1e9,), "2.10 GB"),
    ("size", (None,), "–"),
    ("short", ("fused_conv2d_relu",), "conv2d_relu"),
    ("short", ("softmax",), "softmax"),
]
"""What static/js/format.js shows of the same; a test in a browser compares."""


@pytest.mark.parametrize(("rule", "given", "text"), ALIKE)
def test_numbers_are_shown_as_people_read_them(rule: str, given: tuple[Any, ...], text: str) -> None:
    assert getattr(humans, rule)(*given) == text


def test_a_moment_has_its_year_and_its_zone() -> None:
    assert humans.moment(datetime(2026, 3, 5, 14, 7, tzinfo=timezone(timedelta(hours=2)))) == "5 March 2026, 12:07 UTC"


@pytest.mark.parametrize(("value", "text"), [(1235496, "1.24 M"), (999.7, "1.00 k"), (12, "12"), (None, "–")])
def test_counts_are_scaled(value: float | None, text: str) -> None:
    assert humans.count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "just now"), (59, "just now"), (60, "1 min ago"), (3599, "59 min ago"), (7200, "2 h ago"),
        (86400, "1 day ago"), (200000, "2 days ago"),
    ],
)  # fmt: skip
def test_an_age_is_its_largest_unit(seconds: float, text: str) -> None:
    assert humans.ago(seconds) == text


@pytest.mark.parametrize(
    ("most", "text"),
    [(20, "the beginni…the end"), (22, "the beginning, the end"), (10, "the b…end")],
)
def test_long_words_keep_their_beginning_and_their_end(most: int, text: str) -> None:
    assert humans.shortened("the beginning, the end", most) == text


@pytest.mark.parametrize(
    ("open_", "text"),
    [
        (None, ""), ([], ""), (["x"], "x 8x3"), (["x", "x", "y"], "x 8x3, y 1"), (["z", "y", "x"], "z 2, y 1, 1 more"),
        (["gone", "y"], "y 1"), (["an input of a very long name"], "an input of a…long name "),
    ],
)  # fmt: skip
def test_sizes_are_of_inputs_that_have_open_ones(open_: list[str] | None, text: str) -> None:
    shapes = {"x": [8, 3], "y": [1], "z": [2], "an input of a very long name": []}
    assert humans.sizes(shapes, open_ and [{"input": name} for name in open_]) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("squeezenet", "AMD EPYC (family 25)", "auto"), "squeezenet-AMD-EPYC-family-25-auto"),
        (("../a/b\r\nc", ""), "a-b-c"), (("", "-.-"), "network"), (("\u00e9" * 9, "x" * 99), "x" * 60),
    ],
)  # fmt: skip
def test_names_of_files_are_plain(names: tuple[str, ...], text: str) -> None:
    assert humans.stem(*names) == text
