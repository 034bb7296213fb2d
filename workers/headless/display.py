"""What a headless run shows: a line that moves, and the figures at the end."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from workers.headless.heard import Listened
from workers.headless.terminal import visible
from workers.messages.events import Event
from workers.messages.spec import Budget
from workers.supervision import Journal


class Display:
    """Progress on standard error: rewritten in place on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget  # a run that goes on has its own
        self._terminal = sys.stderr.isatty()
        self._due = 0.0
        self._moving = False
        self._phase = ""
        self._slots = 0
        self._ahead = ""
        self.stopping = False

    @contextmanager
    def stops_on_interrupt(self) -> Iterator[None]:
        """The first Ctrl-C stops the run and keeps the best; a second one breaks off."""

        def stop(number: int, frame: object) -> None:
            if self.stopping:
                raise KeyboardInterrupt
            self.stopping = True
            self._show("stopping; the best so far is kept (Ctrl-C again breaks off)", now=True)

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def over(self, journal: Journal) -> Journal:
        """The journal, with this display looking on: it shows what is kept, and an interrupt stops the run."""
        return Listened(journal, self.hear, lambda: "stop" if self.stopping else journal.heartbeat())

    def hear(self, event: Event) -> None:
        kind = event["kind"]
        if kind == "phase":
            self._phase = event["text"]
            self._show(event["text"], now=True)
        elif kind == "log":
            self._show(event["text"], now=True)
        elif kind == "started":
            for note in event.get("notes", ()):
                self._show(note, now=True)
        elif kind == "operators":
            if begins_with := earlier(event["operators"]):
                self._show(begins_with, now=True)
        elif kind == "slot":
            self._slots += 1
            if expected := event["decision"].get("expected"):
                self._ahead = f", {ahead(expected, self.budget.min_gain)}"
        elif kind == "batch":
            latency = event["latency"]
            text = f"{1e3 * latency:.3f} ms" if latency else "not all operators measured yet"
            self._show(
                f"{human(event['clock'])}  {text}  {event['trials']} trials, {event['failures']} failed, "
                f"{self._slots} slots{self._left(event)}{self._ahead}"
            )

    def _left(self, event: Event) -> str:
        """Time to the first limit that can be foreseen."""
        left = self.budget.left(event["clock"], event["trials"])
        return "" if left is None else f", {human(left)} left"

    def end(self) -> None:
        """Leaves the line that moves, where there is one."""
        if self._moving:
            sys.stderr.write("\n")
        self._moving = False

    @staticmethod
    def say(text: str) -> None:
        """A line of the result, on standard output."""
        sys.stdout.write(visible(text) + "\n")
        sys.stdout.flush()

    def _show(self, text: str, now: bool = False) -> None:
        moment = time.monotonic()
        if not now and moment < self._due:
            return
        self._due = moment + (0.2 if self._terminal else 10.0)
        text = visible(text)
        if self._terminal and not now:
            text = text[: shutil.get_terminal_size().columns - 1]  # a line that wraps cannot be written over
        sys.stderr.write(f"\r\033[K{text}" if self._terminal else f"{text}\n")
        self._moving = self._terminal
        sys.stderr.flush()


def of_earlier(operators: Sequence[dict[str, Any]], what: str) -> int:
    """Operators of which earlier runs found something ("known"), or of others like them ("alike")."""
    return sum(bool(operator.get(what)) for operator in operators)


def earlier(operators: Sequence[dict[str, Any]]) -> str:
    """How many earlier runs tell something of; empty where of none. static/js/run/headline.js says it by the same rule."""
    known, alike = of_earlier(operators, "known"), of_earlier(operators, "alike")
    if not known:
        return f"{alike} of {len(operators)} operators like some of earlier runs" if alike else ""
    like = f", {alike} like some of them" if alike else ""
    return f"{known} of {len(operators)} operators known from earlier runs{like}"


SAYS_NOTHING = 0.5
"""Of operators with a slot or two little is known, and much is expected of them lest a run end too early."""


def ahead(expected: Mapping[str, float], least: float | None) -> str:
    """What tuning a tenth longer should still bring, and below what a run ends that has that limit."""
    early = expected["unknown"] > expected["gain"] / 2
    told = f"{'perhaps ' if early else ''}{100 * expected['gain']:.1f} % less"
    if early and expected["gain"] >= SAYS_NOTHING:
        told = "too early to say"
    limit = "" if least is None else f" (ends under {100 * least:g} %)"
    return f"expected of {human(expected['seconds'])} more: {told}{limit}"


def human(seconds: float) -> str:
    """1 h 20 min; 3 min 20 s."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {left:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
