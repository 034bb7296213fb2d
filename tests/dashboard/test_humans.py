"""Numbers as people read them."""

import pytest

from apps.dashboard import humans


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00278, "2.78 ms"),
        (0.0340e-3, "34.0 µs"),
        (1.5, "1.50 s"),
        (9.996e-3, "10.0 ms"),
        (0.9999e-3, "1.00 ms"),
        (None, "–"),
    ],
)
def test_latencies_have_three_digits_and_a_unit(seconds: float | None, text: str) -> None:
    assert humans.latency(seconds) == text


def test_a_latency_shows_its_spread() -> None:
    assert humans.latency(0.00278, 0.00003) == "2.78 ms ± 0.03"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (200, "3 min 20 s"),
        (59.6, "1 min"),
        (0, "0 s"),
        (3600, "1 h"),
        (7320, "2 h 2 min"),
        (0.234, "0.23 s"),
        (None, "–"),
    ],
)
def test_times_are_human(seconds: float | None, text: str) -> None:
    assert humans.duration(seconds) == text


def test_ratios_end_in_x() -> None:
    assert (humans.ratio(1.0612), humans.ratio(12.34)) == ("1.06 x", "12.3 x")


@pytest.mark.parametrize(("value", "text"), [(1235496, "1.24 M"), (999.7, "1.00 k"), (12, "12"), (None, "–")])
def test_counts_are_scaled(value: float | None, text: str) -> None:
    assert humans.count(value) == text


@pytest.mark.parametrize(("share", "text"), [(0.1234, "12.3 %"), (1e-4, "< 0.1 %"), (0.0, "0.0 %"), (None, "–")])
def test_shares_are_percentages(share: float | None, text: str) -> None:
    assert humans.percent(share) == text


def test_an_operator_is_called_without_what_the_compiler_calls_all_of_them() -> None:
    assert (humans.short("fused_conv2d_relu"), humans.short("softmax")) == ("conv2d_relu", "softmax")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "just now"), (59, "just now"), (60, "1 min ago"), (3599, "59 min ago"), (7200, "2 h ago"),
        (86400, "1 day ago"), (200000, "2 days ago"),
    ],
)  # fmt: skip
def test_an_age_is_its_largest_unit(seconds: float, text: str) -> None:
    assert humans.ago(seconds) == text
