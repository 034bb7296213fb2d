"""A number of runs that is fixed beforehand, by count or by time, with early rejection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.engine.evaluator.estimate import SHORTEST_RUN, estimate
from workers.engine.evaluator.rejection import check_reject, hopeless


@dataclass(frozen=True)
class FixedEvaluator:
    """Times a program until `seconds` are spent, at least `runs` and at most `most` times.

    AutoTVM's, DynaTune's and AdaTune's scripts take runs=500 and compare nothing: the method `autotvm`. The default gives a
    program of 1 ms 20 runs, which is a standard error of about 1 % at 4 % noise, and one that is shorter than a run 100.

    With an incumbent, hopeless programs are cut (`reject`, `z`; see `hopeless`).
    """

    runs: int = 3
    most: int = 300
    seconds: float = 0.02
    reject: float = 1.5
    z: float = 3.0
    statistic: str = "median"
    shortest: float = SHORTEST_RUN

    def __post_init__(self) -> None:
        if not 1 <= self.runs <= self.most or min(self.seconds, self.z, self.shortest) < 0:
            raise ValueError(
                f"runs {self.runs} must be from 1 to most {self.most}; seconds, z and shortest must not be negative"
            )
        check_reject(self.reject)
        estimate([1.0], self.statistic)

    def more(self, times: Sequence[float], incumbent: float | None) -> int:
        """One run while a first look may reject, then up to `runs`, then the rest in steps that double."""
        if self._rejected(times, incumbent):
            return 0
        done = len(times)
        cuts = self.reject > 0 and incumbent is not None
        if done < self.runs:
            return 1 if cuts and done == 0 else self.runs - done
        left = max(self._wanted(times) - done, 0)
        return min(left, done) if cuts else left

    def verdict(self, times: Sequence[float], incumbent: float | None) -> str:
        """ "rejected" or "complete"."""
        return "rejected" if self._rejected(times, incumbent) else "complete"

    def estimate(self, times: Sequence[float]) -> tuple[float, float]:
        """Time and standard error in seconds."""
        return estimate(times, self.statistic)

    def _wanted(self, times: Sequence[float]) -> int:
        """As many runs as fill `seconds`: for a mean by the mean, as `min_repeat_ms` does, for a median by the quickest,
        as the middle of a first few that were disturbed would say to stop."""
        one = self.estimate(times)[0] if self.statistic == "mean" else min(times)
        return max(self.runs, min(self.most, int(self.seconds / max(one, self.shortest, 1e-9))))

    def _rejected(self, times: Sequence[float], incumbent: float | None) -> bool:
        return hopeless(times, incumbent, self.reject, self.runs, self.z)
