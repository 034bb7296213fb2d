"""One short question to a child: start it, wait, take its result."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from workers.headless.errors import EndedEarly, Failure, UserMistake
from workers.headless.heard import Listened
from workers.messages.channel import Wish
from workers.messages.events import Event
from workers.messages.folders import passing_folder
from workers.supervision import Ending, Journal
from workers.supervision.terms import terms_of

GRACE = 20.0  # s for the work in hand of a run that is paused or stopped: what it measures is kept
MISTAKES = frozenset({"NetworkError", "ImportFailed", "NoLinker", "NoCudaCompiler", "NothingToTune"})


def refusal(failed: Event) -> UserMistake | Failure:
    """What a `failed` event means for the exit code."""
    kind = UserMistake if failed["error"] in MISTAKES else Failure
    return kind("; ".join(part for part in (failed["reason"], failed["next_step"]) if part))


class MemoryJournal:
    """Kept for as long as this process lives; nobody wants anything but that the child goes on."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, events: Sequence[Event]) -> None:
        self.events += events

    def heartbeat(self) -> Wish:
        return "continue"

    def result(self) -> Event | None:
        """The `result` event, None without one. Raises UserMistake or Failure when the child told that it failed."""
        for event in self.events:
            if event["kind"] == "failed":
                raise refusal(event)
        return next((event for event in reversed(self.events) if event["kind"] == "result"), None)


def confined(order: Mapping[str, Any], journal: Journal, grace: float) -> Ending:
    """Supervises the order under the terms of its task, its `work_dir` beneath it. `grace`: seconds from the word that
    pauses or stops it to its end."""
    try:
        terms = terms_of(order)
    except OSError as error:
        raise UserMistake(str(error)) from None
    return terms.supervise(order, journal, stop=grace, pause=grace)


def ask(
    order: Mapping[str, Any],
    hear: Callable[[Event], None] = lambda event: None,
    wanted: Callable[[], Wish] | None = None,
) -> Event:
    """The child's result event. Raises UserMistake when it refused the input, Failure when it broke or was not `wanted` any
    more: of a question nothing is kept.

    Paths of the order must be absolute. Without a `work_dir` it gets one for this question alone.
    """
    journal = MemoryJournal()
    with passing_folder("tuningsite-") as own:
        ending = confined({"work_dir": own, **order}, Listened(journal, hear, wanted), grace=0.0)
    result = journal.result()
    if result is None:
        raise EndedEarly(f"the {order['task']} process ended early: {ending.detail}\n{ending.log[-2000:]}")
    return result


def made_in(work: Path, named: str, process: str) -> Path:
    """The file that a child says it made. It may name anything: Failure for what is no plain file of its directory."""
    made = Path(named)
    with suppress(OSError, ValueError):
        if stat.S_ISREG(made.lstat().st_mode) and made.resolve().is_relative_to(work.resolve()):
            return made.resolve()
    raise Failure(f"the {process} process names no file of its directory: {made}; nothing is taken")
