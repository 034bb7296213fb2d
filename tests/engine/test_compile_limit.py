"""How long a program may take to compile."""

from __future__ import annotations

import pytest

from workers.engine.compile_limit import CompileLimit


@pytest.mark.parametrize(
    ("median", "seconds"), [(None, 4.0), (0.05, 1.0), (0.28, 2.8), (60.0, 4.0)], ids=["unknown", "least", "median", "most"]
)  # fmt: skip
def test_the_time_to_compile_follows_what_compiling_took(median: float | None, seconds: float) -> None:
    """The mean of them would be another."""
    limit = CompileLimit()
    for taken in [] if median is None else [median] * 150 + [30 * median] * 20:
        limit.took(2, taken)
    assert limit.of(0) == 4.0, "it may take longer than all others"
    limit.took(0, 0.01)
    assert limit.of(0) == pytest.approx(seconds)


def test_an_operator_whose_programs_take_long_has_its_time() -> None:
    limit = CompileLimit()
    for _ in range(150):
        limit.took(2, 0.05)
    limit.took(0, 0.8)
    assert limit.of(0) == pytest.approx(3.2)


def test_programs_of_one_module_have_the_longest_of_their_limits_and_what_the_others_usually_take() -> None:
    limit = CompileLimit()
    for _ in range(150):
        limit.took(2, 0.05)
    assert limit.together([2, 2, 2]) == pytest.approx(1.0 + 2 * 2 * 0.05)
    limit.took(0, 0.8)
    assert limit.together([2, 0]) == limit.together([0, 2]) == pytest.approx(3.2 + 2 * 0.05)
    assert limit.together([0, 1, 2]) == pytest.approx(4.0 + 2 * 0.8 + 2 * 0.05), "of the second nothing is known"
    assert limit.together([1, 3]) == 2 * 4.0, "as without a limit"


def test_a_gpus_programs_may_take_longer() -> None:
    limit = CompileLimit(gpu=True)
    assert limit.most == limit.of(0) == 8.0
    assert limit.together([0, 1]) == 16.0
    for _ in range(150):
        limit.took(0, 5.0)
    assert limit.of(0) == 8.0
