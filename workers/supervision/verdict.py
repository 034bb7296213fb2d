"""How an attempt ended, from what the child said, how it left, and which rule it broke."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import replace

from workers.messages.channel import Wish
from workers.messages.events import Event
from workers.sandbox.spawn import Process, SpawnError
from workers.supervision.footprint import Violation
from workers.supervision.ports import Ending, EndingKind

_STOPPED: dict[Wish, EndingKind] = {"turn": "paused", "pause": "paused", "stop": "stopped"}


def verdict(known: Ending, process: Process, wanted: Wish, violation: Violation | None, complaint: str) -> Ending:
    """Ends the process and completes `known`, which holds its last event: the kind, the cause and how it left.

    `complaint` is the last error that the child told of: why it left, where it left by itself.
    """
    problem = ""
    try:
        process.protection()
    except SpawnError as error:
        problem = str(error)
    code = process.end(0.0)
    found = replace(known, exit_code=code)
    if violation is not None:
        return replace(found, kind="crashed", cause=violation.cause, detail=violation.detail)
    if known.last is not None:
        return replace(found, kind=_said(known.last))
    if wanted in _STOPPED:
        return replace(found, kind=_STOPPED[wanted])
    cause, detail = ("start", problem) if problem else _explain(code, complaint)
    return replace(found, kind="crashed", cause=cause, detail=detail)


def _said(last: Event) -> EndingKind:
    if last["kind"] == "failed":
        return "failed"
    reason = last.get("reason")
    return "paused" if reason == "paused" else "stopped" if reason == "stopped" else "finished"


def _explain(code: int, complaint: str) -> tuple[str, str]:
    if code == -signal.SIGXCPU:
        return "cpu", "it used up the processor time it was given"
    if code == -signal.SIGKILL:
        return "signal", "it was killed (SIGKILL): by hand, or by the kernel when memory ran out"
    if code < 0:
        with suppress(ValueError):
            return "signal", f"it was ended by {signal.Signals(-code).name}"
        return "signal", f"it was ended by signal {-code}"
    silent = f"it exited with status {code} without saying that it had finished; its last output is kept"
    return "exit", complaint or silent
