"""How much tuning a little longer is expected to bring, and the stop rule "less than x %"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workers.engine.ports import Foreseeing, Progress, Scheduler
from workers.engine.scheduler.shown import short
from workers.engine.scheduler.standing import latency_share
from workers.messages.orders import futile

LONGER = 0.1
"""Of the time that slots took so far: how much longer "a little longer" is."""
LEAST = 60.0
"""Seconds it is at least: early in a run a tenth is a slot or two."""
KNOWN = 3
"""Slots an operator has before its curve says anything: recorded runs of networks stood still in the operators' first slots,
with about 1 % expected by what those showed, and took off 3 to 13 % in the next minute."""
STEEP = 1.0
"""Of a curve that says nothing yet: half the time at twice the configurations, far more than any keeps up."""
BACK = 4
"""A curve's trend is taken from its configuration n / 4 to its end: from n / 2, ends at 1 % gave away 0.6 % of the gain on
synthetic landscapes whose gains are rare and large, and so 0.1 %."""
PATIENCE = 3
"""Slots in a row, at least, in which the expected gain is small: a belief's fit is a sample, and may be off once."""
SELDOM = 5.0
"""Seconds of slots between two looks where no rule asks: a look costs what a decision costs, and is for eyes alone."""
TERM = "expected"
"""Its name among the terms of a slot."""


@dataclass(frozen=True)
class Expected:
    """What tuning so many `seconds` longer should take off the network's present latency, as a share (0 to 1) of it: `gain`;
    `unknown` is the part of it that stands for operators with fewer than KNOWN slots, of which little is known."""

    gain: float
    unknown: float
    seconds: float


class GainRule:
    """Holds when less than `least` (a share of the network's latency; None: never) was expected at the end of every slot for
    as long as the expectation looks ahead; see `expected_gain`.

    All it knows are lengths and terms of the slots, which the run's log keeps: `remember` takes up a run from them.
    """

    def __init__(self, least: float | None, scheduler: Scheduler) -> None:
        self._least, self._scheduler = least, scheduler
        self._spent = self._quiet = 0.0
        self._slots = 0
        self._unseen = math.inf

    @property
    def holds(self) -> bool:
        return self._slots >= PATIENCE and self._quiet >= _longer(self._spent)

    def observe(self, seconds: float, progress: Sequence[Progress]) -> dict[str, Any]:
        """A slot of so many seconds is over and the scheduler has seen it; returns the terms to tell with it: what is
        expected, of every slot where there is a limit and else of one now and then."""
        looks = self._least is not None or self._unseen + seconds >= SELDOM
        terms = {TERM: _told(expected_gain(progress, self._scheduler))} if looks else {}
        self.remember(seconds, terms)
        return terms

    def remember(self, seconds: float, terms: Mapping[str, Any]) -> None:
        """Of an earlier slot, in order."""
        self._spent += seconds
        self._unseen = 0.0 if TERM in terms else self._unseen + seconds
        if self._least is not None and TERM in terms and terms[TERM]["gain"] < self._least:
            self._quiet, self._slots = self._quiet + seconds, self._slots + 1
        else:
            self._quiet, self._slots = 0.0, 0


def expected_gain(progress: Sequence[Progress], scheduler: Scheduler) -> Expected:
    """Of tuning a tenth longer, at least a minute.

    sum of weight x (best - expected best) / sum of weight x best, over operators. The time goes to operators in the
    proportions of their time so far, but none to exhausted ones: of every other, n configurations become (1 + g) n with
    one g for all; n are its own slots' where a belief is asked. Its expected best is then the lower of what two views foresee:
      its curve   best-so-far times follow a power law, x^-a (chance alone makes records even in ln x: Renyi 1962), with a
                  from the last three quarters of the configurations, so that no single slot decides. Every scheduler has
                  this view, and curves flatten: it errs to the side of going on.
      its belief  the scheduler's, if it has one (DynaTune 4.3). It foresees what a bend in the curve promises, but stays
                  within a segment of the curve; what jumps brought lately only the first view knows.
    Of an operator with fewer than KNOWN slots little is known: its curve is taken as STEEP. One without any counts whole,
    unless its scheduler foresees something of its first slot, so that nothing ends before each that matters had its turn:
    neither a warm-up, nor a run that tunes one operator after the other. One of which nothing runs is waited for until it is
    given up. A function of the operators' progress and the scheduler's beliefs alone.
    """
    counted = [one for one in progress if math.isfinite(one.best) or not _given_up(one)]
    latency = sum(latency_share(one) for one in counted)
    going = [one for one in counted if not one.exhausted]
    spent, longer = sum(one.seconds for one in going), _longer(sum(one.seconds for one in progress))
    if not (spent > 0 and 0 < latency < math.inf):
        return Expected(1.0, 1.0, longer)
    gains = [(one.slots >= KNOWN, latency_share(one) * _gain(one, longer / spent, scheduler)) for one in going]
    unknown = sum(gain for known, gain in gains if not known)
    return Expected(sum(gain for _, gain in gains) / latency, unknown / latency, longer)


def _given_up(one: Progress) -> bool:
    return one.exhausted or futile(len(one.curve), one.operator.size)


def _told(expected: Expected) -> dict[str, float]:
    return {name: short(value) for name, value in asdict(expected).items()}


def _longer(spent: float) -> float:
    """Seconds."""
    return max(LONGER * spent, LEAST)


def _gain(one: Progress, growth: float, scheduler: Scheduler) -> float:
    """Share of an operator's time that `growth` times its configurations more should take off."""
    if one.slots == 0:
        return 1 - scheduler.foreseen(one, 0.0) / one.best if isinstance(scheduler, Foreseeing) else 1.0
    stays = math.pow(1 + growth, -_steepness(one))
    if isinstance(scheduler, Foreseeing):
        stays = min(stays, scheduler.foreseen(one, growth * one.own) / one.best)
    return 1 - stays


def _steepness(one: Progress) -> float:
    """a of the power law x^-a through two points of a curve, its end the second; infinite where the first was not valid."""
    first = len(one.curve) // BACK
    if one.slots < KNOWN or not first:
        return STEEP
    return math.log(one.curve[first - 1] / one.best) / math.log(len(one.curve) / first)
