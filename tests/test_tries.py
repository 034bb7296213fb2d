from __future__ import annotations

import pytest

from tests.tries import quickest


@pytest.mark.parametrize(("took", "least", "left"), [([1, 9], 1, 1), ([5, 3, 1, 9], 1, 1), ([7, 5, 6, 1], 5, 1)])
def test_the_first_below_the_bound_is_the_last_that_is_made(took: list[float], least: float, left: int) -> None:
    assert quickest(lambda: took.pop(0), 2.0) == least
    assert len(took) == left
