"""The end of a run: the best of every operator and what may be as good, measured once more. Of many figures the best is also
the luckiest (winner's curse)."""

from __future__ import annotations

import math
from collections.abc import Collection

from workers.engine.ports import Candidate
from workers.messages.spec import Budget
from workers.pipeline.books import Books

LAST, LONG = 0.3, 0.02
"""Seconds for each operator that are left for it at most, or of a long run so much of it: the longer it was, the more figures
there were to be lucky among, and slots bring less than asking again then."""
AT_ONCE = 8
"""Programs in a batch of it, or some more: before each it is asked whether there is time."""
UNHURRIED = ("seconds", "gain", "exhausted", "target")
"""Ends after which there is time for it: whoever stops a run, or asks for so many trials, gets just that. Where a latency was
asked for and does not hold, slots follow again."""


class LastTurn:
    """`share` of the budget's seconds are left for it, `reserve` (s), and it is of the operators that are `tuned`."""

    def __init__(self, books: Books, tuned: Collection[int], share: float, budget: Budget) -> None:
        self._books, self._tuned, self._share, self._trials = books, tuned, share, budget.trials
        seconds = budget.seconds or 0.0
        self.reserve = min(share * seconds, max(LAST * len(tuned), LONG * seconds))

    def follows(self, reason: str) -> bool:
        """Whether it comes after slots that ended for this `reason`."""
        return self._share > 0 and reason in UNHURRIED

    def plan(self, left: float) -> list[Candidate]:
        """Its next batch, by doubt, of operators whose programs should be timed in the seconds that are `left`, none where the
        run's trials are not enough for one; from outcomes alone otherwise, so that a resumed run goes on in it."""
        plan: list[Candidate] = []
        room = math.inf if self._trials is None else self._trials - self._books.trials
        for operator in self._books.by_doubt():
            if len(plan) >= AT_ONCE:
                break
            if operator in self._tuned:
                doubted = self._books.doubted(operator)
                seconds = sum(map(self._books.seconds_again, doubted))
                if seconds <= left and len(plan) + len(doubted) <= room:
                    plan += doubted
                    left -= seconds
        return plan
