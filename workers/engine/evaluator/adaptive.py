"""AdaTune's evaluator: as many runs as it takes for batches of them to agree."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from workers.engine.evaluator.estimate import SHORTEST_RUN, SINGLE_RUN_SPREAD
from workers.engine.evaluator.rejection import check_reject, hopeless

_FEW = 4
_REJECTION_RUNS = 3


@dataclass(frozen=True)
class AdaptiveEvaluator:
    """Times a program in batches until their speeds agree (AdaTune's program).

    A batch is `batch` runs, or with `batch` 0 as many as fill `batch_seconds`. The mean speed of each is kept; once
    there are more than four, the lowest and the highest are dropped. "converged" is more than `batches` batches whose
    speeds have a standard deviation below `epsilon` of their mean; "complete" is `most` runs, or `seconds` of them (0:
    no limit), without. Like the program it reports the mean of the batches without the fastest and the slowest, so that
    a burst of disturbance that lasts for one batch leaves no trace. With `extremes` all batches have to agree, as DynaTune's
    script has it.

    The method `adatune-paper` has the program's numbers. The default is the product's: batches of 3 ms, so that a run of 1 ms
    is repeated 9 times at least and one of 50 µs as long, a tighter epsilon since batches are short, and hopeless programs
    cut as the fixed evaluator cuts them (`reject`, `z`; see `hopeless`).
    """

    most: int = 500
    seconds: float = 0.05
    batch: int = 0
    batch_seconds: float = 0.003
    batches: int = 2
    epsilon: float = 0.02
    reject: float = 1.5
    z: float = 3.0
    shortest: float = SHORTEST_RUN
    extremes: bool = False

    def __post_init__(self) -> None:
        if self.batch < 0 or (self.batch == 0 and not self.batch_seconds > 0) or self.batches < 1:
            raise ValueError(
                f"batch {self.batch} must be a number of runs, or 0 with batch_seconds {self.batch_seconds} above 0, "
                f"and batches {self.batches} at least 1"
            )
        if self.most <= self.batches or min(self.seconds, self.epsilon, self.z, self.shortest) < 0:
            raise ValueError(
                f"most {self.most} must be above batches {self.batches}; seconds {self.seconds}, "
                f"epsilon {self.epsilon}, z {self.z} and shortest {self.shortest} must not be negative"
            )
        check_reject(self.reject)

    def more(self, times: Sequence[float], incumbent: float | None) -> int:
        """What completes the batch in hand or makes the next one; a single run first where it may reject."""
        if self._reason(times, incumbent):
            return 0
        left = self.most - len(times)
        if not times:
            looks = self.batch == 0 or (self.reject > 0 and incumbent is not None)
            return 1 if looks else min(self.batch, left)
        last = self._split(times)[-1]
        if self._full(last):
            last = []
        return max(1, min(self._missing(last, times), left))

    def verdict(self, times: Sequence[float], incumbent: float | None) -> str:
        """ "rejected", "converged" or "complete"."""
        return self._reason(times, incumbent) or "complete"

    def estimate(self, times: Sequence[float]) -> tuple[float, float]:
        """Time and standard error in seconds: of the batches' means, without the extremes once there are three."""
        if not times:
            raise ValueError("no run was timed; time at least one before asking for an estimate")
        batches = self._split(times)
        # One that is not full, as time ran out in it, counts where there is no other.
        means = sorted(statistics.fmean(batch) for batch in [b for b in batches if self._full(b)] or batches)
        kept = means[1:-1] if len(means) > 2 else means
        centre = statistics.fmean(kept)
        if len(means) > 1:
            return centre, statistics.stdev(means) / math.sqrt(len(means))
        if len(times) > 1:
            return centre, statistics.stdev(times) / math.sqrt(len(times))
        return centre, SINGLE_RUN_SPREAD * centre

    def _reason(self, times: Sequence[float], incumbent: float | None) -> str:
        """Why to stop; "" to go on."""
        if hopeless(times, incumbent, self.reject, _REJECTION_RUNS, self.z):
            return "rejected"
        full = [batch for batch in self._split(times) if self._full(batch)]
        if len(full) > self.batches and self._agree(full):
            return "converged"
        spent = self._filled(times)
        over = len(full) > self.batches and 0 < self.seconds <= spent
        return "complete" if over or len(times) >= self.most else ""

    def _agree(self, batches: Sequence[Sequence[float]]) -> bool:
        speeds = sorted(1 / max(statistics.fmean(batch), 1e-12) for batch in batches)
        kept = speeds[1:-1] if len(speeds) > _FEW and not self.extremes else speeds
        return statistics.pstdev(kept) < self.epsilon * statistics.fmean(kept)

    def _split(self, times: Sequence[float]) -> list[list[float]]:
        """Runs in their batches; the last one may be short."""
        batches: list[list[float]] = []
        for time in times:
            if not batches or self._full(batches[-1]):
                batches.append([])
            batches[-1].append(time)
        return batches

    def _full(self, batch: Sequence[float]) -> bool:
        if self.batch:
            return len(batch) >= self.batch
        # Sums of equal times differ from their product in the last digits.
        return self._filled(batch) >= self.batch_seconds * (1 - 1e-9)

    def _missing(self, batch: Sequence[float], times: Sequence[float]) -> int:
        """Runs until `batch` is full."""
        if self.batch:
            return self.batch - len(batch)
        left = self.batch_seconds - self._filled(batch)
        return math.ceil(left / max(statistics.median(times), self.shortest, 1e-9) - 1e-9)

    def _filled(self, times: Sequence[float]) -> float:
        """Seconds that these runs took."""
        return sum(max(t, self.shortest) for t in times)
