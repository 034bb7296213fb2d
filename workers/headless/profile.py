"""Where the wall clock of a command went, from the start of its process on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workers.headless.heard import Heard
from workers.headless.memory import Memory
from workers.messages.causes import UNBUILT
from workers.messages.events import Event
from workers.pipeline.accounts import Accounts

UNACCOUNTED, BROKEN = "unaccounted", "broken off"
TUNING, ARTIFACT = "tuning", "artifact"


class WallClock:
    """Seconds since this process began, the start of the interpreter and all imports included."""

    def __init__(self) -> None:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
        self._began = time.monotonic() - age

    def now(self) -> float:
        return time.monotonic() - self._began


@dataclass
class Paid:
    """Of one operator: seconds of its slots (of its programs in the warm-up and the last turn), configurations, ms won."""

    index: int
    name: str
    weight: int
    seconds: float = 0.0
    configurations: int = 0
    gain_ms: float = 0.0


class Profile:
    """Accounts of the wall clock: own spans, and what the processes say of theirs."""

    def __init__(self, memory: bool = False) -> None:
        """`memory`: look at it too, whenever a process tells something."""
        self._clock = WallClock()
        self.accounts = Accounts(self._clock)
        self.accounts.claim("command/start", self._clock.now())
        self._memory = Memory() if memory else None
        self._operators: dict[int, Paid] = {}
        self._compiled = 0.0
        self._trials = 0

    @contextmanager
    def process(
        self, stage: str, base: float, then: Callable[[Event], None] | None = None
    ) -> Iterator[Callable[[Event], None]]:
        """Around one process whose clock begins at `base`; what it tells has to be given to what is yielded, which
        passes it on to `then`."""
        heard = Heard(base)

        def hear(event: Event) -> None:
            now = self._clock.now()
            heard.hear(event, now)
            if event["kind"] == "batch":  # a slot tells of its own only
                self._trials = event["trials"]
            if self._memory:
                self._memory.look(stage, now, event["clock"], self._trials)
            self._pay(event)
            if then:
                then(event)

        with self.accounts.spending("process/start"):
            try:
                yield hear
            finally:
                if heard.end > 0.0:
                    self._charge(stage, heard)

    @property
    def told(self) -> bool:
        """Whether a process came as far as naming its operators."""
        return bool(self._operators)

    def _charge(self, stage: str, heard: Heard) -> None:
        """Claims what the process spent between the start of its clock and its end; before is "process/start"."""
        claims = heard.steps()
        for phase, accounts in (heard.phases or {}).items():
            for account, seconds in accounts.items():
                # The backend's start is told in steps; what this process could not explain comes out below.
                if account not in ("start/backend", UNACCOUNTED):
                    claims[account if account.startswith("start/") else f"{phase}/{account}"] = seconds
        if stage == TUNING and heard.phases is None:
            claims[BROKEN] = heard.end - sum(claims.values())
        claims[UNACCOUNTED] = heard.end - sum(claims.values())
        claims["process/end"] = self._clock.now() - heard.zero - heard.end
        for account, seconds in claims.items():
            self.accounts.claim(account, seconds)

    def _pay(self, event: Event) -> None:
        if event["kind"] == "operators":
            for row in event["operators"]:
                self._operators.setdefault(row["index"], Paid(row["index"], row["name"], row["weight"]))
        elif event["kind"] == "batch":
            for measurement in event["measurements"]:
                paid = self._operators[measurement["operator"]]
                paid.configurations += measurement["cause"] not in UNBUILT
                self._compiled += measurement["build_seconds"]
                if event["slot"] == 0:
                    paid.seconds += measurement["build_seconds"] + measurement["measure_seconds"]
        elif event["kind"] == "slot":
            paid = self._operators[event["operator"]]
            paid.seconds += event["ended"] - event["began"]
            if event["before"] and event["after"]:
                paid.gain_ms += 1e3 * paid.weight * (event["before"] - event["after"])

    def figures(self) -> dict[str, Any]:
        """JSON: seconds by account, which sum up to the wall clock; this command's part of every operator; memory;
        "compiling", seconds of all compilers together."""
        wall, accounts = self._clock.now(), self.accounts.of()
        accounts[UNACCOUNTED] = wall - sum(seconds for name, seconds in accounts.items() if name != UNACCOUNTED)
        return {
            "seconds": wall,
            "accounts": {name: round(seconds, 6) for name, seconds in accounts.items()},
            "operators": [asdict(self._operators[index]) for index in sorted(self._operators)],
            "memory": self._memory.figures() if self._memory else {},
            "compiling": round(self._compiled, 6),
        }
