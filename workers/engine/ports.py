"""The engine's interfaces. Arrays: n candidates, k knobs, d features. Times in seconds, speeds in FLOP/s of work.

Call order of one slot: Scheduler.choose -> Proposer.propose -> Backend.measure -> Proposer.observe -> Scheduler.observe.
A state (`state`/`restore`) is JSON: what a checkpoint keeps. Restoring it and observing again what was measured since makes
the object know what it knew; what it draws from then on may differ, as choices behind the checkpoint are not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import Choices, Configuration, Features, Operator, Sketch

Score = Callable[[Choices], NDArray[np.float64]]
State = dict[str, Any]
KNOWN = "known"
"""Who proposed what an earlier run found."""


@dataclass(frozen=True)
class Candidate:
    """A configuration somebody wants measured. `origin` says who proposed it ("start", "explorer", "random", ...), of what an
    earlier run found among its fastest KNOWN."""

    operator: int
    configuration: Configuration
    origin: str
    round: int = 0

    @property
    def in_turns(self) -> bool:
        """Whether it is timed to the end, in turns with its rivals: the point is a good figure. What is known is compared with
        the best of hundreds, of which some luck was told."""
        return self.round > 0 or self.origin == KNOWN


@dataclass(frozen=True)
class Outcome:
    """What came of a candidate. A failed build is an outcome with `seconds` None and a cause, not an exception.

    `configuration` is what the backend read back, `identity` its structural hash: two candidates with one identity are one
    program. `seconds` is the evaluator's estimate over `runs` timed runs, `spread` its standard error; `stopped` says why
    measuring ended.
    `cause` is "" or one of: "duplicate", "large", "invalid", "build", "crash", "timeout", "memory", "run".
    """

    candidate: Candidate
    configuration: Configuration
    identity: str
    seconds: float | None
    spread: float = 0.0
    runs: int = 0
    stopped: str = ""
    cause: str = ""
    error: str = ""
    build_seconds: float = 0.0
    measure_seconds: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """A cost model's opinion on n candidates: `mean` and `spread`, shapes (n,), of the log2 of their speed relative to the
    best of the fit, or with `scale` "speed" of that speed itself, which is positive."""

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    scale: Literal["log", "speed"] = "log"

    def __post_init__(self) -> None:
        if self.mean.shape != self.spread.shape or self.mean.ndim != 1:
            raise ValueError(f"mean {self.mean.shape} and spread {self.spread.shape} must be one vector each")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.spread).all() and (self.spread >= 0).all()):
            raise ValueError("a prediction must be finite and its spread not negative")
        if self.scale == "speed" and not (self.mean > 0).all():
            raise ValueError("a predicted speed must be positive: the log2 of every mean is asked for")

    @property
    def log_mean(self) -> NDArray[np.float64]:
        """What ranks and scores are made of: log2 speed relative to the best of the fit."""
        found: NDArray[np.float64] = self.mean if self.scale == "log" else np.log2(self.mean)
        return found

    @property
    def speed_spread(self) -> NDArray[np.float64]:
        """Spread of the speed relative to the best of the fit; of a log2 speed by its derivative."""
        if self.scale == "speed":
            return self.spread
        found: NDArray[np.float64] = np.log(2.0) * np.exp2(self.mean) * self.spread
        return found


class CostModel(Protocol):
    """Learns speed from features; refitted from all data of its operator's sketch at each call of `fit`. The spread of its
    predictions says how sure it is, unless `composition.UNSURE` names it."""

    def fit(self, features: Features, speeds: NDArray[np.float64]) -> None:
        """Features (n, d), speeds (n,) with 0 for failures."""
        ...

    def predict(self, features: Features) -> Prediction:
        """Opinion on features (n, d); before the first fit, zeros."""
        ...

    def tabled(self, tables: Sequence[Features], fixed: Features) -> Callable[[Choices], Prediction] | None:
        """The same opinion of the last fit, on choices (n, knobs): their features are a row of each of `tables`, which has
        those of a knob's options (options, columns), and then `fixed` (d,). None where `predict` is as quick."""
        ...


class Explorer(Protocol):
    """Walks a sketch, guided by a score, and returns the best it met.

    `figures` are counts of the last call, no part of the state: those of `search.FIGURES`. `begun` is what that call would
    have returned without a step, the best of its starting points; None where it scored the whole sketch in place of a
    walk. Whether it may is its parameter `exhaustive`, by that name: landscapes, whose parts are small enough for that, set it
    to False (`landscapes.parameters.walking`).
    """

    figures: dict[str, int]
    begun: Choices | None

    def explore(self, sketch: Sketch, score: Score, count: int, visited: set[tuple[int, ...]]) -> tuple[Choices, int]:
        """Up to `count` (from 1) distinct unvisited choices, best score first, as (n, k), and how many steps were walked."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


class Sampler(Protocol):
    """Reduces an explorer's candidates to a plan: `composition.POOL` for each of its places unless search.pool says otherwise,
    and for greedy as many as there are places.

    `figures` are counts of the last call: an adaptive sampler's "clusters" and "synthesised", and "drawn", the last rows of
    what it returned, which are by chance and no work of its own.
    """

    figures: dict[str, int]

    def sample(
        self,
        sketch: Sketch,
        candidates: Choices,
        scores: NDArray[np.float64],
        count: int,
        visited: Collection[tuple[int, ...]],
    ) -> Choices:
        """At most `count` distinct rows; fewer when that many stand for all candidates, of which there is one at least.
        They come best first and unvisited; rows need not be candidates, but none is in `visited`. `count` starts at 1."""
        ...


class Proposer(Protocol):
    """The search of one operator. `counters` count what it proposed, by the names of `search.COUNTERS`."""

    counters: dict[str, float]

    @property
    def best(self) -> Outcome | None:
        """The fastest outcome so far."""
        ...

    @property
    def exhausted(self) -> bool:
        """Nothing is left to propose."""
        ...

    @property
    def settled(self) -> Collection[str]:
        """Identities of programs that it knows of earlier runs and need not be measured again."""
        ...

    def propose(self, count: int) -> list[Candidate]:
        """At most `count` new candidates; fewer when fewer stand for all or the space runs out, none when `exhausted`."""
        ...

    def borrowed(self, most: int) -> list[Candidate]:
        """At most so many that ride along beside any plan, of whichever operator: what is the best of a twin now."""
        ...

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learns. A run that goes on tells all outcomes since its start, in their order, after `restore`."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


class Evaluator(Protocol):
    """Decides how often a program is timed. Called in the measuring process after every run, which takes `shortest` seconds
    at least: shorter programs are called several times in one."""

    @property
    def shortest(self) -> float: ...

    def more(self, times: Sequence[float], incumbent: float | None) -> int:
        """Runs to time next; 0 stops. `times` are all so far, `incumbent` the operator's best mean or None."""
        ...

    def verdict(self, times: Sequence[float], incumbent: float | None) -> str:
        """Why it stopped: "complete", "converged", "rejected"."""
        ...

    def estimate(self, times: Sequence[float]) -> tuple[float, float]:
        """Time of the program and its standard error, in seconds."""
        ...


@dataclass(frozen=True)
class Progress:
    """An operator as its scheduler sees it; `curve` is the best time after each measured configuration (s, inf before),
    `measured` how many of them its own `slots` measured in `seconds`: others are of the warm-up and of twins' slots. None: all.
    `unbuilt` were proposed since the best was found and not measured: programs known already, or too large.
    """

    operator: Operator
    curve: Sequence[float]
    slots: int
    seconds: float
    exhausted: bool
    measured: int | None = None
    unbuilt: int = 0

    @property
    def best(self) -> float:
        """Best time so far in seconds; inf without a valid configuration."""
        return self.curve[-1] if self.curve else float("inf")

    @property
    def own(self) -> int:
        """Configurations that its seconds went into."""
        return len(self.curve) if self.measured is None else self.measured


@dataclass(frozen=True)
class Decision:
    """Who gets the next slot, by which rule, and the terms that decided; `terms` is shown to the user as it is."""

    operator: int
    rule: str
    terms: dict[str, Any] = field(default_factory=dict)


class Scheduler(Protocol):
    """Gives out slots. Rested arms: an operator that gets no slot does not change. Each that is not exhausted gets one in time,
    and one that never works, whose best time is infinite, keeps none from the others (`standing.rescue` is for it)."""

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """The next operator, or None when every operator is finished. `slot_seconds` is the expected length of the slot."""
        ...

    def observe(self, progress: Progress) -> None:
        """The slot of this operator is over, another's brought it a faster configuration, or its figures were corrected; only
        it may be re-fitted. A run that goes on behind its last checkpoint tells the slots since in their order, without
        choosing them again."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


@runtime_checkable
class Foreseeing(Protocol):
    """A scheduler that believes something of the operators' curves."""

    def foreseen(self, progress: Progress, configurations: float) -> float:
        """Expected best time in seconds after so many more configurations; at most the best so far, and 0 for an operator of
        which nothing is known before its first slot. Fits and changes nothing."""
        ...

    def remember(self, progress: Progress) -> None:
        """What `observe` is told, of an earlier attempt, where more is told before the next choice: counts, and fits nothing.
        The belief is fitted when the operator is observed, or at the choice that asks for it."""
        ...


class Backend(Protocol):
    """Where candidates become times: TVM on attached hardware, or recorded measurements."""

    def operators(self) -> Sequence[Operator]: ...

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        """One outcome a candidate, in order; never raises for a bad candidate. `incumbents`: best time an operator."""
        ...

    def remember(self, operator: int, identity: str) -> None:
        """A program measured before this backend was made: from now on a duplicate."""
        ...

    def spent(self) -> dict[str, float]:
        """Seconds since the start by category: "build" (applying included, where that is no category of its own), "measure",
        "wait"."""
        ...

    def close(self) -> None:
        """Ends every process and frees the device; may be called twice."""
        ...


class Clock(Protocol):
    """Tuning time in seconds: real, or charged by a landscape."""

    def now(self) -> float: ...
