"""One tuning run over any backend: warm-up, slots, stop rules, checkpoints, accounting (DynaTune, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from workers.engine.known import Known
from workers.engine.methods import ROLES, Method
from workers.engine.ports import Backend, Candidate, Clock, Decision, Foreseeing, Outcome, Progress
from workers.engine.scheduler import Setting, scheduler_named
from workers.messages.causes import UNBUILT
from workers.messages.events import Event
from workers.messages.orders import WAITED, SlotTakenUp
from workers.messages.spec import Budget
from workers.pipeline.books import INFINITE, Books
from workers.pipeline.gain import GainRule
from workers.pipeline.last_turn import LastTurn
from workers.pipeline.record import Measurement, measurement_of, outcome_of
from workers.pipeline.searches import Searches
from workers.pipeline.telling import Telling

MANY = 2000
"""Slots of earlier attempts that take a second or more to take up."""


class TuningLoop:
    """Drives scheduler, proposers and backend until a stop rule holds. Not thread-safe; `run` is called once.

    `emit` takes events in order; `wanted` says what the user wants, asked between batches. `peak_flops` is the target's
    ceiling in FLOP/s, `spent` the seconds by category of earlier attempts; `clock` counts on from what they took.
    `known` is what earlier runs found, by operator: it guides the search and never enters this run's figures.
    `tuned` are indexes of the operators that get slots (None: all); the others keep the first configuration that works.
    """

    def __init__(
        self,
        backend: Backend,
        method: Method,
        budget: Budget,
        seed: int,
        peak_flops: float,
        clock: Clock,
        emit: Callable[[Event], None],
        wanted: Callable[[], str],
        spent: dict[str, float] | None = None,
        known: Mapping[int, Known] | None = None,
        tuned: Collection[int] | None = None,
    ) -> None:
        self._backend, self._method, self._budget = backend, method, budget
        self._clock, self._wanted = clock, wanted
        self._books = Books(backend.operators(), spent or {}, clock)
        self._account = self._books.accounts.spending
        self._seed, self._peak = seed, peak_flops
        everyone = {operator.index for operator in backend.operators()}
        self._tuned = everyone if tuned is None else everyone & set(tuned)
        self._slot = 0
        self._deadline = INFINITE if budget.seconds is None else budget.seconds
        self._last_turn = LastTurn(self._books, self._tuned, method.rhythm.last, budget)
        with self._account("start/searches"):
            self._searches = Searches(backend, method, seed, known or {}, self._books.accounts)
            self._scheduler = scheduler_named(
                method.scheduler, self._setting(), **method.parameters.get("scheduler", {})
            )
            self._gain = GainRule(budget.min_gain, self._scheduler)
        self._telling = Telling(backend, self._books.accounts, clock, emit)
        self._revised = dict[int, None]()

    def resume(
        self,
        checkpoint: dict[str, Any] | None,
        measurements: Iterable[Measurement],
        slots: Sequence[SlotTakenUp],
    ) -> bool:
        """Takes up a run: the last checkpoint, if any; all measurements and slots (`slot_taken_up`) since its start. False
        where there are many and the user wants it to end meanwhile: it is not to `run` then, which would tell a part of its
        figures as all, and the next attempt goes on from the same checkpoint."""
        many = len(slots) >= MANY
        if many:
            self._tell("phase", name="resuming", text=f"taking up what {len(slots):,} slots found")
        with self._account("start/resume"):
            saved, begun = self._restore(checkpoint), 0
            for measurement in measurements:
                slot = measurement.get("slot", 0)
                self._take_up(slots, slot - 1 if slot else begun, saved)
                if slot > begun:
                    if many and self._stopped():
                        return False
                    begun = slot
                    self._books.begin()
                outcome = outcome_of(measurement)
                operator = outcome.candidate.operator
                self._observe([outcome])
                if 0 < slot <= saved:  # of a last turn before it the checkpoint's scheduler has heard
                    self._revised.clear()
                elif not slot and self._books.slots[operator]:
                    self._revised[operator] = None
                if outcome.identity and outcome.cause not in UNBUILT:
                    self._backend.remember(operator, outcome.identity)
            self._take_up(slots, len(slots), saved)
            if begun > len(slots):  # in which the attempt ended
                self._revised |= dict.fromkeys(self._gained())
            if not self._over(self._end_of_slots()):
                self._believe_anew()
        return True

    def _restore(self, checkpoint: dict[str, Any] | None) -> int:
        """Returns the number of the last slot that it knows."""
        if checkpoint is None:
            return 0
        self._searches.restore(checkpoint["proposers"])
        self._scheduler.restore(checkpoint["scheduler"])
        self._books.remember(checkpoint.get("searched", {}))  # none of an earlier version
        return int(checkpoint["slot"])

    def _take_up(self, slots: Sequence[SlotTakenUp], until: int, saved: int) -> None:
        """Slots up to that number are over; of those after the checkpoint the scheduler hears now, in their order. What it
        believes of an operator is fitted once, when all are."""
        for operator, seconds, terms, measured in slots[self._slot : until]:
            self._slot += 1
            self._books.slot(operator, seconds, terms, measured)
            self._gain.remember(seconds, terms)
            if self._slot > saved:
                hear = self._scheduler.remember if isinstance(self._scheduler, Foreseeing) else self._scheduler.observe
                for one in (operator, *self._gained(operator)):
                    hear(self._progress(one))
                    self._revised[one] = None

    def run(self) -> str:
        """Tunes; returns why it ended: "seconds", "trials", "target", "gain", "exhausted", "stopped" or "paused"."""
        reason: str | None = None
        while reason is None:
            ended = self._warm_up() or self._slots()
            reason = self._confirm(ended) if self._last_turn.follows(ended) else ended
        last = {**self._books.totals(), "spent": self._books.spent()}
        self._tell("batch", saving=True, slot=self._slot, measurements=[], **last)
        self._tell("finished", reason=reason, **self._books.totals(), report=self.report())
        return reason

    def report(self) -> dict[str, Any]:
        """What every run tells of its method: its parts, seconds spent, and how often each part changed something; `phases` are
        this attempt's seconds by phase and account (`Books.phases`), `searched` the search's by part since the run's start,
        but for what a killed attempt took after its last checkpoint."""
        return {
            "parts": {role: getattr(self._method, role) for role in ROLES},
            "spent": self._books.spent(),
            "phases": self._books.phases(),
            "searched": self._books.searched(),
            "slots": self._slot,
            "operators": len(self._tuned),
            "decided_by_belief": self._books.decided_by_belief,
            "differs_from_round_robin": self._books.differs,
            "belief_differs": self._books.belief_differs,
            "contextual": self._method.search.contextual,
            "timings": {"runs": self._books.runs, "stopped": dict(sorted(self._books.stopped.items()))},
            "search": {**self._searches.counted(), "confirm": self._books.repeated},
        }

    def _warm_up(self) -> str | None:
        """Measures first configurations of all operators together until each has a valid one, then once more those that
        earlier runs found to be faster, and what these found to be as good."""
        self._books.turn("warm-up")
        told = False
        # Asked first: what is proposed counts as tried, and where the latency that was asked for was luck this goes on.
        while not (reason := self._over(self._deadline)) and (candidates := self._first_tries()):
            if not told:
                told = True
                self._tell("phase", name="warm-up", text="measuring a first configuration of every operator")
            self._measure(candidates, 0)
        return reason

    def _first_tries(self) -> list[Candidate]:
        """The next batch of the warm-up; from outcomes alone, so that a resumed run goes on in the middle of it."""
        first = [candidate for operator in self._cold() for candidate in self._searches.propose(operator, 1)]
        return first or self._searches.fallen(self._room(self._method.rhythm.plan)) or self._contenders()

    def _contenders(self) -> list[Candidate]:
        """What earlier runs found to be about as fast as the best of the operators that take most of the time: in slots of
        their own, of three programs each, they would come one operator after the other."""
        plan, room = list[Candidate](), self._room(self._method.rhythm.plan)
        for operator, count in self._searches.contended.items():
            missing = min(count - self._books.tried[operator], room - len(plan))
            if operator in self._tuned and missing > 0:
                plan += self._searches.propose(operator, missing)
        return plan

    def _cold(self) -> list[int]:
        """Operators without a valid configuration, least tried first, as many as a batch has."""
        books, rhythm = self._books, self._method.rhythm
        waiting = [
            i
            for i, best in enumerate(books.best)
            if best == INFINITE and books.tried[i] < rhythm.warm_up and not self._searches.exhausted(i)
        ]
        return sorted(waiting, key=lambda i: books.tried[i])[: self._room(rhythm.plan)]

    def _confirm(self, ended: str) -> str | None:
        """The last turn of slots that `ended` so. Why the run ends; None where the latency that was asked for was luck."""
        self._books.turn("confirming")
        told = False
        while candidates := self._last_turn.plan(self._deadline - self._clock.now()):
            if stopped := self._stopped():
                return stopped
            if self._used_up(self._deadline) or (ended == "target" and not self._arrived()):
                break
            if not told:
                told = True
                self._tell("phase", name="confirming", text="measuring the best of every operator once more")
            self._measure(candidates, 0)
            slots = self._books.slots
            self._revised |= dict.fromkeys(one.operator for one in candidates if slots[one.operator])
        return None if ended == "target" and not self._arrived() else ended

    def _slots(self) -> str:
        self._books.turn("tuning")
        self._tell("phase", name="tuning", text="giving slots to the operators that promise most")
        while not (reason := self._over(self._end_of_slots())):
            self._believe_anew()
            with self._account("decision/choose"):
                decision = self._scheduler.choose(self._everyone(), self._slot_seconds())
            if decision is None:
                return "exhausted"
            self._give(decision)
        return reason

    def _believe_anew(self) -> None:
        """Of what a last turn or an earlier attempt measured, now that slots follow it: a run that only ends has no use for
        it, and whoever stops one does not wait for it."""
        with self._account("decision/observe"):
            while self._revised and not self._stopped():
                operator = next(iter(self._revised))
                self._scheduler.observe(self._progress(operator))
                del self._revised[operator]

    def _believe(self, operator: int) -> None:
        """Its slot is over."""
        for one in (operator, *self._gained(operator)):
            self._scheduler.observe(self._progress(one))

    def _gained(self, but: int | None = None) -> Iterator[int]:
        """Operators that another's slot made faster, where they are believed anything of: who had slots."""
        for operator, best in enumerate(self._books.bests):
            if operator != but and self._books.slots[operator] > 0 and self._books.best[operator] < best:
                yield operator

    def _give(self, decision: Decision) -> None:
        """One slot: plans of its operator until the slot's length is reached."""
        self._slot += 1  # its batches carry its number; those of the warm-up and of the last turn have 0
        operator, began, undisturbed = decision.operator, self._clock.now(), self._undisturbed()
        self._books.begin()
        length = self._method.rhythm.slot_seconds
        while True:
            plan = self._searches.propose(operator, self._room(self._method.rhythm.plan))
            most = len(plan) or self._method.rhythm.plan
            lent = self._searches.borrowed(self._tuned, self._room(len(plan) + most) - len(plan))
            self._measure([*plan, *lent], self._slot)
            over = length is None or self._undisturbed() - undisturbed >= length
            if not plan or over or self._over(self._end_of_slots()):
                break
        ended = self._clock.now()
        seconds, terms = self._undisturbed() - undisturbed, dict(decision.terms)
        if waited := round(ended - began - seconds, 6):
            terms[WAITED] = waited
        measured = self._books.slot(operator, seconds, terms)
        with self._account("decision/observe"):
            self._believe(operator)
            expected = self._gain.observe(seconds, self._everyone())
        self._tell(
            "slot",
            saving=self._telling.due(ended),
            slot=self._slot,
            operator=operator,
            began=began,
            ended=ended,
            trials=measured,
            before=_finite(self._books.bests[operator]),
            after=_finite(self._books.best[operator]),
            decision={"rule": decision.rule, **terms, **expected},
            latency=_finite(self._books.latency),
        )

    def _undisturbed(self) -> float:
        """The clock without what was waited for others: that says nothing of the operator whose slot it was."""
        return self._clock.now() - self._backend.spent().get("wait", 0.0)

    def _room(self, count: int) -> int:
        """Of so many candidates those that the run's trials are enough for, one at least."""
        left = INFINITE if self._budget.trials is None else self._budget.trials - self._books.trials
        return int(max(1, min(count, left)))

    def _measure(self, plan: Sequence[Candidate], slot: int) -> None:
        if not plan:
            return
        with self._telling.claiming("bookkeeping/dispatch") as outcomes:
            outcomes += self._backend.measure(plan, self._books.incumbents())
        self._observe(outcomes)
        with self._account("bookkeeping/events"):
            rows = [measurement_of(outcome) for outcome in outcomes]
        self._tell("batch", slot=slot, measurements=rows, **self._books.totals(), spent=self._books.spent())

    def _observe(self, outcomes: Sequence[Outcome]) -> None:
        with self._account("search/learn"):
            self._searches.observe(outcomes)
        with self._account("bookkeeping/books"):
            self._books.observe(outcomes)

    def _over(self, until: float) -> str | None:
        """Why it is, where it is; `until` is in seconds of the run."""
        if stopped := self._stopped():
            return stopped
        if self._arrived():
            return "target"
        return self._used_up(until) or ("gain" if self._gain.holds else None)

    def _stopped(self) -> str | None:
        """How the user wants it to end, who may."""
        wanted = self._wanted()
        if wanted == "continue":
            return None
        return "paused" if wanted == "pause" else "stopped"

    def _used_up(self, until: float) -> str | None:
        """Which of its limits is."""
        budget = self._budget
        if budget.trials is not None and self._books.trials >= budget.trials:
            return "trials"
        return "seconds" if self._clock.now() >= until else None

    def _arrived(self) -> bool:
        """Whether the network is as fast as was asked for."""
        wanted = self._budget.target_latency
        return wanted is not None and self._books.latency <= wanted

    def _progress(self, operator: int) -> Progress:
        done = operator not in self._tuned and self._books.best[operator] != INFINITE
        most = self._method.rhythm.slots
        done = done or (most is not None and self._books.slots[operator] >= most)
        return self._books.progress(operator, done or self._searches.exhausted(operator))

    def _everyone(self) -> list[Progress]:
        return [self._progress(operator) for operator in range(len(self._books.best))]

    def _end_of_slots(self) -> float:
        """Seconds of the run after which no slot begins: half of one more would be the last turn's. A slot by time ends with
        the plan in which they are over."""
        if not self._last_turn.reserve:
            return self._deadline
        half = self._slot_seconds() / 2 if self._method.rhythm.slot_seconds is None else 0.0
        return self._deadline - self._last_turn.reserve - half

    def _slot_seconds(self) -> float:
        """Expected length of the next slot in seconds: the mean of those so far."""
        if self._method.rhythm.slot_seconds is not None:
            return self._method.rhythm.slot_seconds
        return sum(self._books.seconds) / self._slot if self._slot else 1.0

    def _setting(self) -> Setting:
        """With the run's limits; its end may be none."""
        end = self._deadline - self._last_turn.reserve
        left = (lambda: max(0.0, end - self._clock.now())) if end < INFINITE else None
        repeated = lambda: self._books.repeated  # noqa: E731  as `left`: it is asked at every decision
        return Setting(self._seed, self._peak, left, self._budget.trials, repeated)

    def _tell(self, kind: str, saving: bool = False, **payload: Any) -> None:
        self._telling.tell(kind, payload, self._checkpoint if saving else None)

    def _checkpoint(self) -> dict[str, Any]:
        return {
            "scheduler": self._scheduler.state(),
            "slot": self._slot,
            "searched": self._books.searched(),
            "proposers": self._searches.state(),
        }


def _finite(seconds: float) -> float | None:
    return seconds if seconds != float("inf") else None
