"""Ranks as SciPy's, whatever is tied."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from workers.engine.ranks import rank_correlation, ranks

RNG = np.random.default_rng(5)
VALUES = {
    "different": (RNG.normal(size=40), RNG.normal(size=40)),
    "tied": (RNG.integers(0, 5, 60).astype(float), RNG.integers(0, 3, 60).astype(float)),
    "failures": (RNG.normal(size=50), np.maximum(RNG.normal(size=50), 0.0)),
    "infinite": (np.array([1.0, np.inf, 2.0, np.inf, -np.inf]), np.array([-0.0, 0.0, 1.0, 2.0, 3.0])),
    "two": (np.array([2.0, 1.0]), np.array([1.0, 2.0])),
    "many": (RNG.integers(0, 300, 5000).astype(float), RNG.normal(size=5000)),
}


@pytest.mark.parametrize("pair", VALUES.values(), ids=VALUES)
def test_ranks_and_their_correlation_are_scipy_s(pair: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    for values in pair:
        assert ranks(values).tolist() == rankdata(values).tolist()
    assert rank_correlation(*pair) == pytest.approx(float(spearmanr(*pair).statistic), abs=1e-12)


@pytest.mark.parametrize("count", [1, 4])
def test_of_what_is_constant_nothing_is_said(count: int) -> None:
    some, constant = np.arange(count, dtype=float), np.full(count, 3.0)
    assert rank_correlation(some, constant) is rank_correlation(constant, some) is None


def test_who_agrees_on_something_does_not_load_scipy_s_statistics() -> None:
    script = (
        "import sys, numpy as np; from workers.engine.transfer import agreement; "
        "print(agreement(np.arange(9.0), np.arange(9.0) ** 2), 'scipy.stats' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).split() == ["1.0", "False"]
