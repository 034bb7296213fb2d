"""One moving line: which cell, how far, and how long all that is left may take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from workers.headless.display import human

INTERVAL = 10.0  # s between lines where the stream is no terminal


class Progress:
    """`estimates` are the seconds each cell may take, in their order; call `begin`, `show` as often as liked, `end`."""

    def __init__(
        self, estimates: Sequence[float], stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._estimates = list(estimates)
        self._stream = stream or sys.stderr
        self._clock = clock
        self._terminal = self._stream.isatty()
        self._number, self._name, self._text = -1, "", ""
        self._began = self._due = 0.0
        self._left: float | None = None
        self._said = 0.0

    def now(self) -> float:
        """Seconds on the clock the estimates are compared with."""
        return self._clock()

    def begin(self, name: str) -> None:
        """The next cell."""
        self._number += 1
        self._name, self._text, self._left = name, "starting", None
        self._began = self._due = self._clock()
        self.tick()

    def show(self, text: str, left: float | None = None) -> None:
        """What the cell does; `left` its own estimate of the seconds to its end, None where it has none."""
        self._text = text
        self._left, self._said = left, self._clock()
        self.tick()

    def tick(self) -> None:
        """Draws the line when it is due."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + (0.5 if self._terminal else INTERVAL)
        line = (
            f"[{self._number + 1}/{len(self._estimates)}] {self._name}: {human(now - self._began)}, {self._text}; "
            f"about {human(self.left(now))} left for all"
        )
        self._stream.write(f"\r\033[K{line[:200]}" if self._terminal else f"{line}\n")
        self._stream.flush()

    def left(self, now: float) -> float:
        """Seconds until everything may be done."""
        if self._left is not None:
            here = self._left - (now - self._said)
        else:
            here = self._estimates[self._number] - (now - self._began)
        return max(0.0, here) + sum(self._estimates[self._number + 1 :])

    def end(self, text: str) -> None:
        """The cell's result, on a line that stays."""
        line = f"[{self._number + 1}/{len(self._estimates)}] {self._name}: {text}"
        self._stream.write(f"\r\033[K{line}\n" if self._terminal else f"{line}\n")
        self._stream.flush()
