"""Which programs are compiled, by their code and what compiling took so far."""

from __future__ import annotations

import math

import pytest

from workers.engine import thrift
from workers.engine.thrift import FACTOR, SHARE, Thrift

RATE = 1e-3
"""Seconds to compile a unit of code."""
SMALL = 100.0
HUGE = 6 * SMALL


@pytest.fixture
def busy() -> Thrift:
    """It compiled a hundred programs of operator 0, of which a small one is the fastest."""
    found = Thrift()
    for _ in range(100):
        assert found.worth(0, SMALL)
        found.compiled(0, SMALL, RATE * SMALL)
    found.fastest(0, SMALL)
    return found


def compiled(thrift: Thrift, count: int, size: float) -> int:
    """How many of `count` programs of that size were worth it."""
    worth = 0
    for _ in range(count):
        if thrift.worth(0, size):
            thrift.compiled(0, size, RATE * size)
            worth += 1
    return worth


def test_large_code_gets_its_share_of_the_time_and_no_more(busy: Thrift) -> None:
    assert 0 < compiled(busy, 1000, HUGE) * RATE * HUGE <= SHARE * 100 * RATE * SMALL * 1.2


def test_code_like_the_fastest_is_always_worth_it(busy: Thrift) -> None:
    assert compiled(busy, 1000, FACTOR * SMALL) == 1000


def test_an_operator_none_of_whose_programs_ran_is_given_everything(busy: Thrift) -> None:
    assert busy.worth(1, HUGE)


def test_what_compiles_quickly_is_worth_it_however_small_the_fastest(busy: Thrift) -> None:
    busy.fastest(0, 1.0)
    assert compiled(busy, 1000, SMALL) == 1000


def test_a_larger_program_that_proves_fastest_raises_the_limit(busy: Thrift) -> None:
    assert compiled(busy, 100, HUGE) < 100
    busy.fastest(0, HUGE / 2)
    assert compiled(busy, 100, HUGE) == 100


def test_everything_is_worth_it_where_nobody_is_thrifty() -> None:
    found = Thrift(math.inf)
    found.fastest(0, 1.0)
    assert compiled(found, 100, 1e9) == 100


@pytest.mark.mutation
def test_without_a_factor_large_code_takes_all_the_time(busy: Thrift, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrift, "SHARE", 1e9)
    with pytest.raises(AssertionError):
        test_large_code_gets_its_share_of_the_time_and_no_more(busy)
