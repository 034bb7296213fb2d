"""Runs one child for one order. The calling thread must outlive the call: the kernel ties the child's life to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

from workers.messages.channel import EVENTS_VARIABLE, LeaseLost
from workers.messages.orders import PAST
from workers.sandbox.lock import MeasureLock
from workers.sandbox.spawn import Access, Limits, spawn
from workers.sandbox.watchdog import guarded
from workers.supervision.attempt import Attempt
from workers.supervision.footprint import Bounds
from workers.supervision.ports import Deadlines, Ending, Journal, Speech
from workers.supervision.slices import Slices
from workers.supervision.wires import Wires


@contextmanager
def _termination_raises() -> Iterator[None]:
    """SIGTERM, or a terminal that is closed, unwinds the stack instead of ending us at once, where nobody else has decided what
    it does."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    in_front = threading.current_thread() is threading.main_thread()
    both = (signal.SIGTERM, signal.SIGHUP) if in_front else ()
    mine = [number for number in both if signal.getsignal(number) == signal.SIG_DFL]
    for number in mine:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def supervise(
    order: Mapping[str, Any],
    journal: Journal,
    *,
    argv: Sequence[str] = (sys.executable, "-m", "workers.child"),
    limits: Limits | None = None,
    access: Access | None = None,
    bounds: Bounds | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    pass_fds: Sequence[int] = (),
    deadlines: Deadlines | None = None,
    speech: Speech | None = None,
    lock: MeasureLock | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Starts `argv`, gives it the order, relays its events until it is over; leaves no process behind.

    `bounds`: what the child and all it starts may take together, files in the directories it may write. `speech`: what it
    may say, anything without it. `lock`: the child, which need not know of it, computes under it and is stopped while
    others measure. The order's lists named in `PAST` are emptied as soon as they are written down for the child.
    Every event is written to the journal once and in order. An exception of the journal other than LeaseLost,
    KeyboardInterrupt and SIGTERM (main thread) end the child and go on to the caller.
    """
    line = json.dumps(order, allow_nan=False).encode()
    for name in PAST:  # an attempt lasts for days, and its callers hold the order
        if isinstance(found := order.get(name), list):
            found.clear()
    bounds = replace(bounds or Bounds(), directories=access.write if access is not None else ())
    with _termination_raises(), ExitStack() as held:
        reading, writing = os.pipe()
        held.callback(os.close, reading)
        try:
            process = held.enter_context(
                spawn(
                    argv,
                    limits=limits,
                    access=access,
                    env={**(env or {}), EVENTS_VARIABLE: str(writing)},
                    cwd=cwd,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writing, *pass_fds),
                )
            )
        finally:
            os.close(writing)
        held.enter_context(guarded(process))
        wires = held.enter_context(closing(Wires(process, reading, line)))
        del line  # as large as what the run found so far
        slices = held.enter_context(closing(Slices(process.tree, lock, clock)))
        attempt = Attempt(process, wires, journal, deadlines or Deadlines(), bounds, speech or Speech(), slices, clock)
        try:
            return attempt.watch()
        except LeaseLost:
            return attempt.lost()
