"""Going on after a crash, for runs that have no actor to decide it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from workers.messages.names import ATTEMPTS
from workers.supervision.directory import DirectoryJournal, History
from workers.supervision.ports import Ending


def restart_until_progress_stops(
    journal: DirectoryJournal,
    order: Callable[[History], Mapping[str, Any]],
    attempt: Callable[[Mapping[str, Any]], Ending],
) -> Ending:
    """Attempts the order, made anew from the history each time, until it ends otherwise than by a crash.

    Gives up with the last crash after `ATTEMPTS` in a row that saved no measurement. `attempt` is `supervise`
    with everything but the order bound.
    """
    fruitless = 0
    while True:
        before = journal.trials
        ending = attempt(order(journal.history()))
        if ending.kind != "crashed":
            return ending
        fruitless = 0 if journal.trials > before else fruitless + 1
        if fruitless >= ATTEMPTS:
            detail = f"{fruitless} attempts in a row saved no measurement; the last one: {ending.detail}"
            return replace(ending, detail=detail)
