"""A seeded landscape for tests: smooth with cliffs, with builds that cost, fail, and turn out to be known programs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.engine.evaluator.estimate import TURNS
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration, Knob, Operator, Sketch, tilings
from workers.landscapes.clock import SimulatedClock
from workers.landscapes.landscape import Landscape
from workers.messages.causes import INVALID

PEAK_FLOPS = 1e11
FAULTS = {INVALID: 0.02, "build": 0.02, "crash": 0.01, "timeout": 0.01, "memory": 0.01, "run": 0.01}
TIMEOUT_SECONDS = 4.0
RUNS = 20


@dataclass(frozen=True)
class Hill:
    """Speed over one sketch: falls with the weighted distance of the features from the top, sharply beyond cliffs."""

    top: NDArray[np.float32]
    slopes: NDArray[np.float64]
    cliffs: NDArray[np.bool_]
    peak: float

    @classmethod
    def drawn(cls, sketch: Sketch, rng: np.random.Generator) -> Hill:
        """Random configurations are about 2^5 times slower than the top, and none 2^10 times."""
        top = sketch.features(sketch.random(rng, 1))[0]
        slopes = np.exp(rng.uniform(-1.5, 0.5, sketch.width))
        typical = (
            float(np.mean(np.abs(sketch.features(sketch.random(rng, 256)) - top) @ slopes)) if sketch.knobs else 0.0
        )
        cliffs = rng.random(sketch.width) < 0.2
        return cls(top, slopes * (5.0 / max(typical, 1e-9)), cliffs, PEAK_FLOPS * rng.uniform(0.3, 0.9))

    def speed(self, features: NDArray[np.float32]) -> float:
        """FLOP/s of one row of features."""
        away = features.astype(np.float64) - self.top
        score = -float(np.abs(away) @ self.slopes) - 1.5 * float(np.sum((away > 2) & self.cliffs))
        return float(self.peak * 2.0 ** (10.0 * math.tanh(score / 10.0)))


class SyntheticLandscape(Landscape):
    """Answers every configuration of `operators`, equal for equal seeds, whatever was asked before.

    The upper half of a location knob's options are read back as its middle one, as TVM does with places that do not
    exist: those are duplicates by identity. `faults` are shares of programs by cause.
    """

    def __init__(
        self,
        seed: int,
        operators: Sequence[Operator],
        clock: SimulatedClock,
        faults: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(operators, clock)
        self._seed = seed
        self._faults = dict(FAULTS if faults is None else faults)
        self._last: list[Outcome] = []
        self._hills = [
            [Hill.drawn(sketch, np.random.default_rng([seed, o.index, i])) for i, sketch in enumerate(o.sketches)]
            for o in operators
        ]

    def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        """See `Landscape`."""
        made = self._read_back(candidate)
        key = (candidate.operator, made.sketch, *made.choices)
        cause = self._cause(key)
        identity = "" if cause == INVALID else hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()
        build = 0.0 if cause == INVALID else 0.05 + 0.3 * self._draw("build", *key) ** 3
        if cause:
            taken = TIMEOUT_SECONDS if cause == "timeout" else 0.0
            return Outcome(
                candidate, made, identity, None, cause=cause, error=f"synthetic {cause}",
                build_seconds=build, measure_seconds=taken,
            )  # fmt: skip
        true = self.seconds(candidate.operator, made)
        noise = 0.02 * (self._draw("noise", candidate.round, *key) - 0.5)
        rejected = incumbent is not None and not candidate.in_turns and true > 2 * incumbent
        runs = 1 if rejected else RUNS * (TURNS if candidate.in_turns else 1)
        return Outcome(
            candidate, made, identity, true * (1 + noise), 0.006 * true / math.sqrt(runs), runs,
            "rejected" if rejected else "complete", build_seconds=build, measure_seconds=runs * true + 0.001,
        )  # fmt: skip

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        """See `Backend`."""
        self._last = super().measure(candidates, incumbents)
        return self._last

    def run_times(self) -> list[tuple[float, ...]]:
        """See `TimedBackend`: runs of 4 % noise around the outcome's time, the same of a program whatever was in its batch."""
        return [tuple(o.seconds * self._noise(o)) if o.seconds else () for o in self._last]

    def _noise(self, outcome: Outcome) -> NDArray[np.float64]:
        rng = np.random.default_rng([self._seed, int(outcome.identity, 16), outcome.candidate.round])
        return rng.lognormal(0, 0.04, outcome.runs)

    def seconds(self, operator: int, configuration: Configuration) -> float:
        """The time without noise, of programs that fail too."""
        found = self._operators[operator]
        sketch = found.sketches[configuration.sketch]
        row = sketch.features(np.asarray([configuration.choices], dtype=np.int32))[0]
        return found.work / self._hills[operator][configuration.sketch].speed(row)

    def _read_back(self, candidate: Candidate) -> Configuration:
        asked = candidate.configuration
        knobs = self._operators[candidate.operator].sketches[asked.sketch].knobs
        choices = (
            min(choice, len(knob.options) // 2) if knob.kind == "location" else choice
            for knob, choice in zip(knobs, asked.choices, strict=True)
        )
        return Configuration(asked.sketch, tuple(choices))

    def _cause(self, key: tuple[int, ...]) -> str:
        edges = np.cumsum(list(self._faults.values()))
        place = int(np.searchsorted(edges, self._draw("fault", *key), side="right"))
        return [*self._faults, ""][place]

    def _draw(self, *what: object) -> float:
        """Uniform in [0, 1), a function of the seed and `what` alone."""
        digest = hashlib.blake2b(repr((self._seed, what)).encode(), digest_size=8).digest()
        return int.from_bytes(digest) / 2.0**64


def synthetic_operators(seed: int, count: int) -> tuple[Operator, ...]:
    """Operators like a small network's: convolutions of two sketches, poolings of few configurations, one of a single
    one every fifth place."""
    rng = np.random.default_rng([seed, count])
    return tuple(_operator(index, rng) for index in range(count))


def _operator(index: int, rng: np.random.Generator) -> Operator:
    kind = ("conv", "pool", "conv", "matmul", "copy")[index % 5]
    sketches = {"conv": _convolution, "matmul": _convolution, "pool": _pooling, "copy": _single}[kind](rng)
    flops = float(10 ** rng.uniform(6.5, 8.5)) if kind in ("conv", "matmul") else 0.0
    size = float(10 ** rng.uniform(5, 6))
    start = tuple(
        Configuration(number, tuple(sketch.random(rng, 1)[0].tolist())) for number, sketch in enumerate(sketches)
    )
    weight = int(rng.integers(1, 4))
    return Operator(
        index, f"{kind}{index}", f"{kind}-{index}", weight, flops, size, max(flops, 10 * size), sketches, start
    )


def _convolution(rng: np.random.Generator) -> tuple[Sketch, ...]:
    extents = [2 ** int(rng.integers(3, 7)) for _ in range(2)]
    knobs = (
        Knob("rows", "tile", tilings(extents[0], 3)),
        Knob("columns", "tile", tilings(extents[1], 3)),
        Knob("reduction", "tile", tilings(32, 2)),
        Knob("unroll", "category", ((0,), (16,), (64,), (512,))),
        Knob("location", "location", ((-1,), (0,), (1,), (2,), (3,))),
    )
    return Sketch(knobs), Sketch(knobs[:-1])


def _pooling(rng: np.random.Generator) -> tuple[Sketch, ...]:
    places = tuple((place,) for place in range(-1, int(rng.integers(3, 6))))
    return (Sketch((Knob("unroll", "category", ((0,), (16,), (64,))), Knob("location", "location", places))),)


def _single(rng: np.random.Generator) -> tuple[Sketch, ...]:
    return (Sketch(()),)
