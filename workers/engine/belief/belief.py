"""What is believed of one operator's best-so-far curve, and what a slot is expected to bring."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.engine.belief.curves import curve_named
from workers.engine.belief.posterior import FAST, LONG, QUANTILES, Gaussian, Problem, Sampling, sample
from workers.engine.belief.segments import cuts, points
from workers.engine.ports import State

Array = NDArray[np.float64]

FEW = 5
"""A segment with fewer configurations leans on the segment before (DynaTune's program)."""

WIDEN = 2.0
"""How much wider than the posterior of the segment before the prior of the next one is; chosen here."""

NEARLY = 1.25
"""Times as long a plateau is believed nearly as before: its chain goes on."""

SAMPLED = (1e-8, 1 - 1e-3)
"""Bests, as shares of the peak, that leave something to sample; outside, the forecast is the best itself."""


@dataclass(frozen=True)
class Forecast:
    """Speed after a slot, in FLOP/s: the best so far, `mean`, `spread` and `values` (samples,) of the predicted curve,
    the `noise` of an observation around it, the expected `improvement` over the best, and the `gains` (samples,) of the
    curves from now on, where they are over the best already. best <= values <= peak, without a prior 0 < values; improvement
    and gains >= 0; an observation is within hypot(spread, noise) of the mean as often as one of a normal variable."""

    best: float
    mean: float
    spread: float
    noise: float
    improvement: float
    gains: Array
    values: Array

    @property
    def rise(self) -> float:
        """The mean of the gains."""
        return float(self.gains.mean())

    @property
    def reached(self) -> Array:
        """The values, (samples,); the best where a curve ends under it."""
        found: Array = np.maximum(self.values, self.best)
        return found

    def __post_init__(self) -> None:
        if not (np.isfinite(self.values).all() and self.values.min() > 0 and self.improvement >= 0):
            raise ValueError(
                f"a forecast must be finite and above 0, not {self.values.min()} after a best of {self.best}"
            )


@dataclass(frozen=True)
class Diagnostics:
    """How the last fit went: DynaTune's Appendix B reports an acceptance of 0.54 and a trace. None when unknown.

    `autocorrelation` is in steps, of which `kept` came after the burn-in. `points` were fitted, of `length` configurations in
    the last of so many `segments`; `configurations` were observed in all. `trace` (steps, walkers, p + 1) is the chain of the
    `parameters`, thinned; it is not kept by `Belief.state`, so a restored belief has none before its next fit.
    """

    acceptance: float | None
    autocorrelation: float | None
    segments: int
    configurations: int
    length: int
    points: int
    parameters: tuple[str, ...]
    trace: NDArray[np.float32] | None
    kept: int

    @property
    def at_least(self) -> bool:
        """Whether the chain is too short for its autocorrelation, which is longer than it seems then."""
        return self.autocorrelation is not None and self.kept < LONG * self.autocorrelation


class Belief:
    """The Bayesian learning-curve belief of DynaTune 4.3 for one operator.

    Call `observe` after each slot of the operator (`begin` in place of the first, where slots passed before it), then
    `forecast` as often as wanted. The curve is cut at jumps and the last segment is fitted; a few points lean on the posterior
    of the segment before. Where all that came since the fit before is more of its plateau, the chain goes on from there
    (`Sampling.again`); `walked` are the steps of the last chain, and how many of them were thrown away. Speeds are
    normalised by the peak, which is raised to anything faster that is observed. A forecast stays within the segment; that it
    may end by a jump is what `jump_chance` tells. Without a `prior` (the default of DynaTune's program) a curve may end under
    the best, and few points lean on nothing: the limits of the parameters and the peak are all that is known before. Without
    `pieces` (program) the whole curve is fitted, from its first valid configuration on.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        sampling: Sampling = FAST,
        curve: str = "log_power",
        prior: bool = True,
        pieces: bool = True,
    ) -> None:
        self._rng = rng
        self._sampling = sampling
        self._curve = curve_named(curve)
        self._prior = prior
        self._pieces = pieces
        self._peak = 1.0
        self._best = 0.0
        self._length = 0
        self._segments = 0
        self._configurations = 0
        self._samples: Array | None = None
        self._inherited: Gaussian | None = None
        self._points = 0
        self.walked = sampling.steps, sampling.burn
        self._acceptance: float | None = None
        self._autocorrelation: float | None = None
        self._trace: NDArray[np.float32] | None = None
        self._fan: Array | None = None

    def observe(self, speeds: Array, ahead: float, peak: float) -> None:
        """Fits again. `speeds` (n,) is the best so far after each configuration in FLOP/s, 0 before a valid one;
        `ahead` the configurations the next slot is expected to measure; `peak` the target's ceiling in FLOP/s."""
        starts = cuts(speeds)[: None if self._pieces else 1]
        self._configurations = len(speeds)
        if not starts:
            return
        if len(starts) > self._segments and self._samples is not None:
            self._inherited = self._widened()
        level, length = self._level, self._length
        self._segments = len(starts)
        self._peak = max(peak, float(speeds[-1]))
        self._best = float(speeds[-1]) / self._peak
        self._length = len(speeds) - starts[-1]
        if not SAMPLED[0] <= self._best <= SAMPLED[1]:
            self._samples = self._acceptance = self._autocorrelation = self._trace = self._fan = None
            self._points = 0
            return
        part = points(speeds / self._peak, starts[-1], self._sampling.points)
        prior = None
        if self._prior and self._length < FEW:
            prior = self._inherited if self._inherited is not None else Gaussian(*self._curve.broad())
        least = self._best if self._prior else 0.0
        problem = Problem(self._curve, part, self._best, self._length + max(1.0, ahead), least, prior)
        nearly = level == self._level and length >= FEW and self._length <= NEARLY * length
        sampled = sample(problem, self._sampling, self._rng, self._samples if nearly else None)
        self._samples, self.walked = sampled.samples, (sampled.steps, sampled.burn)
        self._points, self._trace, self._fan = len(part.x), sampled.trace, sampled.fan
        self._acceptance, self._autocorrelation = sampled.acceptance, sampled.autocorrelation

    def begin(self, speeds: Array, ahead: float, peak: float) -> None:
        """As `observe`, of a curve that nothing was fitted to so far: the segment that a few points lean on comes first."""
        starts = cuts(speeds)
        if self._prior and self._pieces and len(starts) > 1 and len(speeds) - starts[-1] < FEW:
            self.begin(speeds[: starts[-1]], ahead, peak)
        self.observe(speeds, ahead, peak)

    def forecast(self, ahead: float) -> Forecast | None:
        """Speed after `ahead` more configurations; None while nothing valid was observed."""
        if self._best == 0.0:
            return None
        best = self._best * self._peak
        drawn = self.curves(np.array([self._length + max(1.0, ahead), self._length]))
        if drawn is None or self._samples is None:
            return Forecast(best, best, 0.0, 0.0, 0.0, np.zeros(1), np.array([best]))
        # A shorter slot than the fit was told of, and rounding, may leave the prior's limits by a little.
        least = best if self._prior else SAMPLED[0] * self._peak
        values, now = np.clip(drawn, least, self._peak).T
        mean, spread = max(least, float(values.mean())), float(values.std())
        noise = best * float(np.sqrt(np.mean(np.exp(2 * self._samples[:, -1]))))
        improvement = min(normal_improvement(mean, spread, best), self._peak - best)
        # From the best on, which stays where a curve is under it.
        gains = np.maximum(np.maximum(values, best) - np.maximum(now, best), 0.0)
        return Forecast(best, mean, spread, noise, improvement, gains, values)

    def curves(self, x: Array) -> Array | None:
        """Speeds (samples, m) in FLOP/s after `x` (m,) configurations of the last segment, a row a sampled curve; None where
        nothing was sampled."""
        if self._samples is None:
            return None
        values: Array = self._curve(self._samples[:, :-1], x) * self._peak
        return values

    @property
    def chain(self) -> Array | None:
        """Along the chain of the last fit, evenly: speeds (steps, QUANTILES) in FLOP/s, quantiles over the walkers of the
        best after the slot that it was told of. None where nothing was sampled."""
        if self._fan is None:
            return None
        speeds: Array = np.clip(self._fan, self._best, 1.0) * self._peak
        return speeds

    def jump_chance(self, ahead: float) -> float:
        """Chance of at least one jump in `ahead` more configurations.

        Among n exchangeable draws the next m hold the best of all with probability m / (n + m), and about ln n + 1
        records are expected so far (Renyi 1962). Jumps are taken as the share of records they were up to now, with half
        a jump as prior; the chance therefore falls as an operator is explored, and slower where jumps were many.
        """
        if self._segments == 0:
            return 0.0
        n = self._configurations
        share = (self._segments - 0.5) / (np.log(n) + 1)
        return min(1.0, float(share)) * ahead / (n + ahead)

    def diagnostics(self) -> Diagnostics:
        """Of the last fit."""
        return Diagnostics(
            acceptance=self._acceptance,
            autocorrelation=self._autocorrelation,
            segments=self._segments,
            configurations=self._configurations,
            length=self._length,
            points=self._points,
            parameters=(*self._curve.parameters, "ln(noise / best)"),
            trace=self._trace,
            kept=self.walked[0] - self.walked[1],
        )

    def state(self) -> State:
        """JSON; arrays as base64 of their bytes, samples in single precision."""
        return {
            "rng": self._rng.bit_generator.state,
            "peak": self._peak,
            "best": self._best,
            "length": self._length,
            "segments": self._segments,
            "configurations": self._configurations,
            "samples": _packed(self._samples),
            "inherited": None
            if self._inherited is None
            else [self._inherited.mean.tolist(), self._inherited.spread.tolist()],
            "points": self._points,
            "walked": list(self.walked),
            "acceptance": self._acceptance,
            "autocorrelation": self._autocorrelation,
            "fan": _packed(self._fan),
        }

    def restore(self, state: State) -> None:
        """Inverse of `state`; later behaviour is identical."""
        columns = len(self._curve.parameters) + 1
        self._rng.bit_generator.state = state["rng"]
        self._peak, self._best = state["peak"], state["best"]
        self._length, self._segments = state["length"], state["segments"]
        self._configurations, self._points = state["configurations"], state["points"]
        self._acceptance, self._autocorrelation = state["acceptance"], state["autocorrelation"]
        if "walked" in state:  # checkpoints of earlier versions have none
            steps, burn = state["walked"]
            self.walked = steps, burn
        self._samples = _unpacked(state["samples"], columns)
        self._fan = _unpacked(state.get("fan"), len(QUANTILES))  # checkpoints of earlier versions have none
        inherited = state["inherited"]
        self._inherited = None if inherited is None else Gaussian(np.array(inherited[0]), np.array(inherited[1]))
        self._trace = None

    @property
    def _level(self) -> tuple[int, float, float]:
        """What stays on a plateau."""
        return self._segments, self._peak, self._best

    def _widened(self) -> Gaussian:
        """Prior of the next segment: the posterior of this one, relative to its best, wider."""
        assert self._samples is not None
        relative = self._curve.relative(self._samples[:, :-1], self._best)
        floor = 0.1 * self._curve.broad()[1]
        return Gaussian(relative.mean(axis=0), np.maximum(WIDEN * relative.std(axis=0), floor))


def normal_improvement(mean: float, spread: float, best: float) -> float:
    """E[max(0, Y - best)] for Y normal with `mean` and `spread` (Brochu et al. 2010, eq. 4); any unit."""
    from scipy.special import ndtr

    if spread <= 0:
        return max(0.0, mean - best)
    z = (mean - best) / spread
    return max(0.0, float((mean - best) * ndtr(z) + spread * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)))


def _packed(values: Array | None) -> str | None:
    return None if values is None else base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def _unpacked(text: str | None, columns: int) -> Array | None:
    if text is None:
        return None
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(-1, columns).astype(np.float64)
