"""Posterior of a curve's parameters: maximum likelihood by least squares, then the affine-invariant sampler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from workers.engine.belief.curves import Curve
from workers.engine.belief.segments import Points
from workers.without import without

Array = NDArray[np.float64]

# ln of the noise relative to the best speed: from a tenth of a percent to the best itself.
NOISE = (float(np.log(1e-3)), 0.0)


TRACE = 50
"""Most steps of a chain that are kept for its diagnostics; with 40 walkers of 4 parameters 32 kB an operator."""

CHAIN, QUANTILES = 20, (0.1, 0.25, 0.5, 0.75, 0.9)
"""Most steps of a chain that are told of a fit, and of its walkers at each: half a kilobyte in a checkpoint."""

STEP = 1.5e-8
"""Of a forward difference: the root of double precision."""

CLOSE = 1e-6
"""Relative change at which the fit ends: far under the posterior's width, whose middle is all it has to give."""

WINDOW = 5.0
"""Autocorrelation times over which the autocorrelation is summed (Sokal 1996; emcee's default)."""

LONG = 50.0
"""Autocorrelation times that a chain has to be long for its own to be known (emcee's default): of a shorter one it is at least
what it seems."""


@dataclass(frozen=True)
class Sampling:
    """How a posterior is sampled.

    `steps` of `walkers` walkers, the first `burn` thrown away, `samples` kept. `points` of a plateau in every factor e of
    configurations are looked at (None: all). A fit to what has got longer by a plateau alone goes on from the one before, for
    `again` steps (None: every fit begins anew).
    """

    walkers: int = 10
    steps: int = 500
    burn: int = 300
    samples: int = 200
    points: int | None = None
    again: int | None = None

    def __post_init__(self) -> None:
        given = (self.walkers, self.steps, self.burn, self.samples, self.points, self.again)
        if fractions := [count for count in given if not isinstance(count, int | None)]:
            raise ValueError(f"sampling: {fractions[0]} must be a whole number, as all that it counts")
        counts = self.walkers, self.samples, *(1 if count is None else count for count in (self.again, self.points))
        if min(counts) < 1 or not 0 <= self.burn < self.steps:
            raise ValueError(
                f"sampling of {self.walkers} walkers, {self.steps} steps of which {self.burn} are thrown away, {self.samples} "
                f"samples, again {self.again}, points {self.points}: walkers, samples, again and points are 1 at least, and "
                "burn is under steps"
            )


PAPER = Sampling()
"""DynaTune 5 (10 walkers, 500 steps, 200 samples) and its program (burn-in 300)."""

FAST = Sampling(walkers=40, steps=120, burn=100, samples=400, points=10, again=60)
"""A third of the cost, for slots of a second or two: a fit takes 71 to 75 ms in place of 219 to 239, and one that goes on along
a plateau 34; a step costs nearly the same whatever the walkers. On the curves of five networks it has the operator first that
the paper's sampling has in 83 to 88 % of decisions, where the paper's with another seed has it in 88 to 94 %; on SqueezeNet's
with all points (85 %) no more often, and going on for 40 steps or 30 less often (63 to 83 %)."""


@dataclass(frozen=True)
class Gaussian:
    """A prior in the curve's `relative` coordinates: mean and spread, shape (q,)."""

    mean: Array
    spread: Array


@dataclass(frozen=True)
class Problem:
    """A curve through points, not under `least` at `horizon`, with a prior or a uniform one (None). Noise is a share of the
    `best` observed."""

    curve: Curve
    points: Points
    best: float
    horizon: float
    least: float
    prior: Gaussian | None

    @cached_property
    def lower(self) -> Array:
        """Least curve parameters and ln(noise / best), (p + 1,)."""
        return np.append(self.curve.lower, NOISE[0])

    @cached_property
    def upper(self) -> Array:
        """Largest curve parameters and ln(noise / best), (p + 1,)."""
        return np.append(self.curve.upper, NOISE[1])

    @cached_property
    def places(self) -> Array:
        """Where a curve is evaluated: the points, then the horizon."""
        return np.append(self.points.x, self.horizon)

    @cached_property
    def observed(self) -> float:
        """Configurations that the points stand for."""
        return float(self.points.weights.sum())

    def log_probability(self, theta: Array) -> Array:
        """Log posterior (n,) of `theta` (n, p + 1), the last column ln(noise / best); -inf where the prior forbids."""
        inside = np.minimum(np.maximum(theta, self.lower), self.upper)
        allowed = (inside == theta).all(axis=1)
        theta = inside
        values = self.curve(theta[:, :-1], self.places)
        allowed &= (values[:, -1] >= self.least) & (values[:, -1] <= 1.0)
        noise = theta[:, -1]
        misfit = ((values[:, :-1] - self.points.y) / self.best) ** 2 @ self.points.weights
        result = -0.5 * misfit * np.exp(-2 * noise) - self.observed * noise
        if self.prior is not None:
            away = (self.curve.relative(theta[:, :-1], self.best) - self.prior.mean) / self.prior.spread
            result += self.curve.stretch(theta[:, :-1]) - 0.5 * (away**2).sum(axis=1)
        return np.where(allowed, result, -np.inf)


@dataclass(frozen=True)
class Sampled:
    """`samples` (samples, p + 1) of the posterior, the mean `acceptance` fraction and the `autocorrelation_time` after the
    burn-in, and the whole chain, burn-in included, thinned to a `trace` (at most TRACE, walkers, p + 1) in single precision.
    `fan` (at most CHAIN, QUANTILES) is what the walkers say along it of the horizon. It had so many `steps`, of which the first
    `burn` were thrown away."""

    steps: int
    burn: int
    samples: Array
    acceptance: float
    autocorrelation: float | None
    trace: NDArray[np.float32]
    fan: Array


def sample(problem: Problem, sampling: Sampling, rng: np.random.Generator, before: Array | None = None) -> Sampled:
    """Samples the posterior; from `before` on, samples (n, p + 1) of one that was nearly the same. emcee draws from a
    RandomState; it is seeded from `rng`, which is the only source of chance."""
    again, start = sampling.again, None
    if before is not None and again is not None:
        start = _allowed(problem, before, sampling.walkers)
        if start is not None:  # no more steps are kept than the samples need
            sampling = replace(sampling, steps=again, burn=max(0, again - -(-sampling.samples // sampling.walkers)))
    start = starts(problem, sampling, rng) if start is None else start
    with np.errstate(all="ignore"):
        whole = walk(problem, start, sampling.steps, int(rng.integers(2**32)))
    chain = whole[sampling.burn :]
    flat = chain.reshape(-1, chain.shape[2])
    # Single precision halves a checkpoint; rounding here keeps a restored belief equal to the one that was saved.
    rounded = flat[rng.permutation(len(flat))[: sampling.samples]].astype(np.float32).astype(np.float64)
    trace = whole[:: -(-len(whole) // TRACE)].astype(np.float32)
    accepted = _accepted(whole[max(0, sampling.burn - 1) :])
    return Sampled(
        sampling.steps, sampling.burn, rounded, accepted, autocorrelation_time(chain), trace, _fan(problem, whole)
    )


def walk(problem: Problem, start: Array, steps: int, seed: int) -> Array:
    """The chain (steps, walkers, p + 1) of emcee's stretch move (Goodman & Weare 2010), draw for draw that of its
    EnsembleSampler: what that does around each step, from checks to a loop over the walkers, is most of what it takes."""
    walkers, parameters = start.shape
    if walkers < 2 * parameters:
        raise ValueError(f"{walkers} walkers are too few for {parameters} parameters: take {2 * parameters} at least")
    with without("scipy.stats"):  # for a move that is not used here: half a second
        from emcee.moves import StretchMove

    move, random = StretchMove(), np.random.RandomState(np.random.MT19937(seed))
    points, known = start.copy(), problem.log_probability(start)
    chain = np.empty((steps, *start.shape))
    halves = np.arange(walkers) % 2
    for step in chain:
        random.random_sample()  # drawn among its moves, of which there is one
        half = halves.copy()
        random.shuffle(half)
        sides = np.flatnonzero(half == 0), np.flatnonzero(half)
        for mine, others in (sides, sides[::-1]):
            offered, factors = move.get_proposal(points[mine], [points[others]], random)
            reached = problem.log_probability(offered)
            taken = factors + reached - known[mine] > np.log(random.random_sample(len(mine)))
            moved = mine[taken]
            points[moved], known[moved] = offered[taken], reached[taken]
        step[:] = points
    return chain


def _fan(problem: Problem, chain: Array) -> Array:
    """Quantiles (steps, QUANTILES) over the walkers of the curve at the horizon; as exact as a checkpoint keeps them."""
    told = chain[:: -(-len(chain) // CHAIN)]
    values = problem.curve(told.reshape(-1, told.shape[2])[:, :-1], problem.places[-1:]).reshape(told.shape[:2])
    found: Array = np.quantile(values, QUANTILES, axis=1).T.astype(np.float32).astype(np.float64)
    return found


def _accepted(chain: Array) -> float:
    """Share of the steps of `chain` (steps, walkers, p) after its first in which a walker moved."""
    return float((chain[1:] != chain[:-1]).any(axis=2).mean()) if len(chain) > 1 else 0.0


def autocorrelation_time(chain: Array) -> float | None:
    """Longest integrated autocorrelation time over the parameters of `chain` (steps, walkers, p), in steps.

    Goodman & Weare (2010): the autocorrelations of the walkers are averaged, and summed over Sokal's window. As
    emcee.autocorr.integrated_time, but by one transform for all, a tenth of the cost, and 1 at least: nothing is forgotten
    sooner. It is more than that where the chain is shorter than LONG times as long. None where a walker never moved.
    """
    steps = len(chain)
    if steps < 2 or not np.all(np.ptp(chain, axis=0) > 0):
        return None
    spectrum = np.fft.rfft(chain - chain.mean(axis=0), n=2 * steps, axis=0)
    sums = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:steps]
    times = 2 * np.cumsum((sums / sums[0]).mean(axis=1), axis=0) - 1
    inside = np.arange(steps)[:, None] < WINDOW * times
    ends = np.where(inside.all(axis=0), steps - 1, np.argmin(inside, axis=0))
    longest = float(np.take_along_axis(times, ends[None, :], axis=0).max())
    return max(1.0, longest) if np.isfinite(longest) else None


def starts(problem: Problem, sampling: Sampling, rng: np.random.Generator) -> Array:
    """Starting positions (walkers, p + 1) in a tight ball around the likeliest, all allowed by the prior."""
    centre = _likeliest(problem)
    free = centre + 1e-4 * rng.standard_normal((16 * sampling.walkers, len(centre)))
    offered = np.clip(_bounded(free, problem.lower, problem.upper), problem.lower, problem.upper)
    _lift(problem, offered)
    # Curves just above the best are always allowed: they fill up what the ball could not offer.
    levels = rng.uniform(problem.best * (1 + 1e-4), min(1.0, problem.best * 1.01), sampling.walkers)
    spare = np.stack([np.append(problem.curve.flat(level), offered[0, -1]) for level in levels])
    spare[:, 1:] += 0.01 * rng.standard_normal(spare[:, 1:].shape)
    offered = np.concatenate([offered, np.clip(spare, problem.lower, problem.upper)])
    # The largest of log probability + Gumbel noise are a draw without replacement by probability.
    order = np.argsort(-(problem.log_probability(offered) + rng.gumbel(size=len(offered))))
    chosen: Array = offered[order[: sampling.walkers]]
    return chosen


def _allowed(problem: Problem, before: Array, walkers: int) -> Array | None:
    """Positions (walkers, p + 1) of `before` (n, p + 1), lifted where the horizon came nearer; None where the prior allows
    too few of them."""
    lifted = np.clip(before, problem.lower, problem.upper)
    with np.errstate(all="ignore"):
        _lift(problem, lifted)
        allowed: Array = lifted[np.isfinite(problem.log_probability(lifted))][:walkers]
    return allowed if len(allowed) == walkers else None


def _lift(problem: Problem, theta: Array) -> None:
    """Raises those of `theta` (n, p + 1) that would be under the least at the horizon to just above it, in place."""
    reached = problem.curve(theta[:, :-1], problem.places[-1:])[:, 0]
    factor = np.maximum(1.0, problem.least * (1 + 1e-6) / np.maximum(reached, 1e-300))
    theta[:, :-1] = problem.curve.lift(theta[:, :-1], factor)


def _likeliest(problem: Problem) -> Array:
    """The least-squares fit (p + 1,) in free coordinates (see `_bounded`), for which the unbounded Levenberg-Marquardt of
    MINPACK is a fifth of the cost of a bounded fit. With a prior it is the likeliest a posteriori.
    """
    from scipy.optimize import least_squares

    curve, points, best, least = problem.curve, problem.points, problem.best, problem.least
    lower, upper = curve.lower, curve.upper
    root = np.sqrt(points.weights)
    stiff = 30.0 * np.sqrt(problem.observed)
    aim = min(least * (1 + 2e-3), 0.5 * (least + 1.0))
    # Without a prior a few points leave the fit undetermined, and MINPACK wants as many residuals as parameters.
    missing = max(0, len(lower) - len(points.x) - 1)

    def residuals(free: Array) -> Array:
        """Of n members at once, (n, p) to (n, residuals)."""
        theta = _bounded(free, lower, upper)
        values = curve(theta, problem.places)
        off = root * (values[:, :-1] - points.y) / best
        # Stiff, and aimed just over the least, so that the fit ends where the prior allows it.
        under = stiff * np.maximum(0.0, aim - values[:, -1:]) / best
        if problem.prior is None:
            return np.concatenate([off, under, np.zeros((len(free), missing))], axis=1)
        # The weight of the prior against points whose noise is not known yet: 5 % is taken.
        away = (curve.relative(theta, best) - problem.prior.mean) / problem.prior.spread
        return np.concatenate([off, under, 0.05 * away], axis=1)

    def slopes(free: Array) -> Array:
        """Forward differences of all parameters in one call of the curve, (residuals, p)."""
        steps = STEP * np.maximum(1.0, np.abs(free))
        rows = residuals(np.concatenate([free[None, :], free + np.diag(steps)]))
        found: Array = ((rows[1:] - rows[0]) / steps[:, None]).T
        return found

    inside = np.clip((curve.start(points.x, points.y) - lower) / (upper - lower), 1e-6, 1 - 1e-6)
    with np.errstate(all="ignore"):
        fit = least_squares(
            lambda free: residuals(free[None, :])[0],
            np.arcsin(2 * inside - 1),
            slopes,
            method="lm",
            ftol=CLOSE,
            xtol=CLOSE,
            max_nfev=150,
        )
    noise = float(np.clip(np.sqrt(2 * fit.cost / problem.observed), 2e-3, 0.5))
    share = (np.log(noise) - NOISE[0]) / (NOISE[1] - NOISE[0])
    return np.append(fit.x, np.arcsin(2 * share - 1))


def _bounded(free: Array, lower: Array, upper: Array) -> Array:
    """Parameters between their limits from coordinates without limits, as MINUIT does: half a sine."""
    bounded: Array = lower + (upper - lower) * 0.5 * (np.sin(free) + 1)
    return bounded
