"""The measuring lock for a child that nobody would trust with it: shared in slices, and stopped between them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from workers.sandbox.lock import MeasureLock
from workers.sandbox.tree import Tree
from workers.supervision.footprint import Violation

SLICE = 1.0  # s that it computes, at least, while others wait to measure
_STRAY = 1.0
"""Seconds of processor time until it counts as going on while it is stopped: what it was at in the kernel it ends."""


class _Hold(threading.Thread):
    """Waits for the lock and keeps it until `over`: nobody can be called back from the queue for it."""

    def __init__(self, lock: MeasureLock) -> None:
        super().__init__(name="slice", daemon=True)
        self._lock = lock
        self.answered, self.over = threading.Event(), threading.Event()
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            with self._lock.shared():
                self.answered.set()
                self.over.wait()
        except Exception as error:
            self.error = error
            self.answered.set()


class Slices:
    """Whether the tree may compute now: always without a lock, else while that is shared for it. For one thread: call
    `check` often, `close` at last."""

    def __init__(self, tree: Tree, lock: MeasureLock | None, clock: Callable[[], float]) -> None:
        self.ours = True
        self._tree, self._lock, self._clock = tree, lock, clock
        self._since, self._waited, self._spent = clock(), 0.0, 0.0
        self._hold: _Hold | None = None

    @property
    def waited(self) -> float:
        """Seconds in which it was stopped."""
        return self._waited if self.ours else self._waited + self._clock() - self._since

    def check(self, timeout: float) -> None:
        """Waits for a turn for so many seconds, or leaves it to others. Raises Violation for a tree that will not be
        stopped, OSError where there is no lock to be had."""
        if self._lock is None:
            return
        if self._hold is None or (self.ours and self._clock() - self._since >= SLICE and self._lock.wanted()):
            self._hold = self._queued(self._lock)
        if not self.ours:
            self._wait(self._hold, timeout)

    def close(self) -> None:
        if self._hold is not None:
            self._hold.over.set()
            if self._hold.answered.is_set():
                self._hold.join()
            self._hold = None

    def _queued(self, lock: MeasureLock) -> _Hold:
        if not self._tree.stop():
            raise Violation("time", "it could not be stopped while others measure")
        self._spent = self._tree.processor()
        self.close()
        self.ours, self._since = False, self._clock()
        return _Hold(lock)

    def _wait(self, hold: _Hold, timeout: float) -> None:
        answered = hold.answered.wait(timeout)
        if hold.error is not None:
            raise hold.error
        if self._tree.processor() - self._spent > _STRAY:
            raise Violation("time", "it went on while it was stopped for others to measure")
        if answered:
            self._waited = self.waited
            self.ours, self._since = True, self._clock()
            self._tree.go_on()
