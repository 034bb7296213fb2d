"""How one operator of a run got on: its best so far, its slots with what was expected of them, and what failed."""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from operator import itemgetter

from apps.tuning.history import History
from apps.tuning.models import Measurement, Operator, Slot, TuningRun
from apps.tuning.paging import by_number
from apps.tuning.thinning import thinned
from workers.messages.causes import UNBUILT
from workers.messages.foretold import Foretold, foretold
from workers.messages.orders import own_seconds

STEPS, SLOTS, SPANS = 600, 100, 2000
"""As many steps of the best so far, slots, and places of slots as a page shows; of more an even choice."""


@dataclass(frozen=True)
class Given:
    """A slot: `began` and `ended` on the run's clock, `own` the operator's own time when it ended."""

    number: int
    began: float
    ended: float
    own: float
    trials: int
    before: float | None
    after: float | None
    rule: str
    expected: Foretold | None

    @property
    def within(self) -> bool | None:
        """Whether what came is where it was expected with a chance of CHANCE; None where nothing was."""
        if self.expected is None or self.after is None:
            return None
        return self.expected.holds(self.after)


@dataclass(frozen=True)
class Step:
    """A new best: when by the run's clock and by the operator's own time, after how many trials, and its seconds; `again`
    where they are more than before, for the one before was measured again."""

    clock: float
    own: float
    trials: int
    seconds: float
    again: bool = False


@dataclass(frozen=True)
class Course:
    """`own` is the time of all `count` slots in seconds; `given` are slots with what was expected of them, `spans` when more of
    them (began, ended)."""

    steps: Sequence[Step]
    given: Sequence[Given]
    spans: Sequence[tuple[float, float]]
    count: int
    own: float
    failures: Mapping[str, int]

    @property
    def expected(self) -> int:
        """Of the slots shown, those before which something was believed and after which something came."""
        return sum(slot.within is not None for slot in self.given)

    @property
    def again(self) -> bool:
        return any(step.again for step in self.steps)

    @property
    def within(self) -> int:
        return sum(slot.within is True for slot in self.given)


def course(run: TuningRun, operator: Operator) -> Course:
    """Reads an operator's measurements a page at a time, and of its slots all times but few decisions."""
    rows = run.slots.filter(operator=operator.index).order_by("number")
    slots = list(rows.values_list("number", "began", "ended", "waited"))
    spans = [(began, ended) for _, began, ended, _ in slots]
    own = _OwnTime([(began, own_seconds(began, ended, waited)) for _, began, ended, waited in slots])
    history, reached, failures = _measured(run, operator)
    # Of a single operator both grow together.
    spark = history.sparks[operator.index]
    bests = pairwise([math.inf, *(seconds for _, seconds in spark)])
    steps = [
        Step(clock, own.at(clock), int(trials), seconds, seconds > before)
        for (clock, _), (trials, _), (before, seconds) in zip(history.curve, spark, bests, strict=True)
    ]
    return Course(
        steps=thinned(steps, STEPS),
        given=_given(run, thinned([number for number, *_ in slots], SLOTS), own, reached),
        spans=thinned(spans, SPANS),
        count=len(slots),
        own=own.whole,
        failures=dict(failures.most_common()),
    )


def _measured(run: TuningRun, operator: Operator) -> tuple[History, dict[int, int], Counter[str]]:
    """The best so far, the configurations known at the end of each slot, and failures by cause."""
    history, reached, failures, known = History([operator]), dict[int, int](), Counter[str](), 0
    tried = Measurement.objects.filter(run=run, operator=operator.index).exclude(cause__in=UNBUILT)
    rows = by_number(tried, "clock", "seconds", "configuration", "cause", "round", "slot")
    for clock, batch in groupby(rows, key=itemgetter(1)):
        seen = []
        for _, _, seconds, configuration, cause, round_, slot in batch:
            seen.append((operator.index, seconds, configuration, round_))
            known += round_ == 0
            reached[slot] = known
            if seconds is None:
                failures[cause] += 1
        history.add(clock, seen)
    return history, reached, failures


def _given(run: TuningRun, numbers: Sequence[int], own: _OwnTime, reached: Mapping[int, int]) -> list[Given]:
    rows = run.slots.filter(number__in=numbers).order_by("number")
    return [
        Given(
            number=slot.number,
            began=slot.began,
            ended=slot.ended,
            own=own.at(slot.ended),
            trials=slot.trials,
            before=slot.before,
            after=slot.after,
            rule=slot.rule,
            expected=_expected(slot, reached.get(slot.number)),
        )
        for slot in rows
    ]


def _expected(slot: Slot, configurations: int | None) -> Foretold | None:
    """What a child told may be anything, where the file that it read made it say so: None for what nobody can believe."""
    with suppress(LookupError, TypeError, ArithmeticError):
        return foretold(slot.decision.get("belief"), configurations, slot.before)
    return None


class _OwnTime:
    """From the run's clock to the seconds of an operator's own slots; `slots` are (began, own seconds) in order. When in a slot
    it waited is not known: told is as if that had been its end."""

    def __init__(self, slots: Sequence[tuple[float, float]]) -> None:
        self._slots = slots
        self._before = list(accumulate((own for _, own in slots), initial=0.0))

    @property
    def whole(self) -> float:
        return self._before[-1]

    def at(self, clock: float) -> float:
        place = bisect(self._slots, clock, key=itemgetter(0))
        if not place:
            return 0.0
        began, own = self._slots[place - 1]
        return self._before[place - 1] + min(clock - began, own)
