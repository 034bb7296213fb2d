"""What makes a candidate worth measuring: a score from a cost model's opinion, larger is better.

Every acquisition takes an opinion on n candidates and `best`, the log2 of the best speed so far relative to the best of the
fit, and gives n scores that are log2 too, so that an annealing's temperature means the same under all of them. A model that
tells no spread (boosted trees) is followed by its mean, by "expected_improvement" in its order alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from workers.engine.ports import Prediction

Scores = NDArray[np.float64]

_LEAST_SPREAD = 1e-3
_FAR = -6.0


def mean(opinion: Prediction, best: float) -> Scores:
    """The expected speed itself: AutoTVM's score."""
    return opinion.log_mean


def expected_improvement(opinion: Prediction, best: float) -> Scores:
    """log2 of E[max(0, Y - best)] for normal Y (AdaTune; Brochu et al. 2010, eq. 4).

    Y is what the model learned: the speed, as AdaTune's program has it, or its log2. What almost certainly fails has a
    small mean and the spread of its few exceptions; as a speed it promises nothing, and a normal log2 speed of the same
    two moments would be as wide as several doublings and promise more than anything.

    The logarithm keeps the order and takes away the plateaus: improvements of 1e-3 and 1e-30 would look alike to an
    annealing, which has to climb from one to the other (Ament et al. 2023, LogEI).
    """
    from scipy.special import ndtr

    spread = np.maximum(opinion.spread, _LEAST_SPREAD)
    z = (opinion.mean - (best if opinion.scale == "log" else 2.0**best)) / spread
    near = np.maximum(z, _FAR)
    density = np.exp(-0.5 * near * near) / np.sqrt(2 * np.pi)
    scores = np.log(density + near * ndtr(near))
    # Far below the best the two terms cancel; phi(z) / z^2 (1 - 3 / z^2) is their difference there.
    far = np.minimum(z, _FAR)
    tail = -0.5 * far * far - 0.5 * np.log(2 * np.pi) - 2 * np.log(-far) + np.log1p(-3 / (far * far))
    result: Scores = (np.where(z < _FAR, tail, scores) + np.log(spread)) / np.log(2.0)
    return result


def upper_bound(opinion: Prediction, best: float) -> Scores:
    """Mean plus one spread: optimism in the face of uncertainty (Auer 2002)."""
    above = opinion.mean + opinion.spread
    found: Scores = above if opinion.scale == "log" else np.log2(above)
    return found


ACQUISITIONS: dict[str, Callable[[Prediction, float], Scores]] = {
    "mean": mean,
    "expected_improvement": expected_improvement,
    "upper_bound": upper_bound,
}
