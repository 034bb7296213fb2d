"""All processes of the site under one: started in order, started again when they end, ended together."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from apps.operations.orphans import Orphans, adopt, children
from apps.operations.parts import Part

TICK = 0.1
GRACE = 4.0  # s from the word to the kill; after five nothing is left
LAST = 0.5  # s for orphans after that


@dataclass
class Launcher:
    """`first` comes up before and goes down after the others, which need it. Call `run` from the main thread.

    `adopts`: this process takes in the orphans of its parts and ends them. Children that it has already are not its own: a
    script started them before it became this process.
    """

    first: Sequence[Part]
    others: Sequence[Part]
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    adopts: bool = False
    _ending: bool = field(default=False)

    def __post_init__(self) -> None:
        self._orphans: Orphans | None = None
        if self.adopts:
            before = tuple(children())
            adopt()
            parts = (*self.first, *self.others)
            self._orphans = Orphans(lambda: [*before, *(part.pid for part in parts if part.pid)], self.clock)

    def catch_signals(self) -> None:
        """From now on Ctrl-C, SIGTERM and a closed terminal, unless `nohup` says that it does not matter, end everything in
        order."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._end)

    def _end(self, *_: object) -> None:
        self._ending = True

    @property
    def ending(self) -> bool:
        return self._ending

    def tend(self, parts: Sequence[Part]) -> None:
        """One look at each."""
        for part in parts:
            if self._ending:
                return
            if (news := part.look()) is not None:
                self.say(news)

    def run(self) -> None:
        """Until a signal comes."""
        while not self._ending:
            self.tend([*self.first, *self.others])
            if self._orphans is not None:
                self._orphans.look()
            self.sleep(TICK)

    def end(self) -> None:
        """Asks everybody to end and kills who does not, the `first` last."""
        deadline = self.clock() + GRACE
        for parts in (self.others, self.first):
            for part in parts:
                part.ask_to_end()
            while any(part.running() for part in parts) and self.clock() < deadline:
                self.sleep(TICK / 2)
            for part in parts:
                part.kill()
            deadline = self.clock() + 0.5
        deadline = self.clock() + LAST
        while self._orphans is not None and self._orphans.end() and self.clock() < deadline:
            self.sleep(TICK / 10)
