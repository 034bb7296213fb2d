"""One attempt: listens to a child until it is over or has to go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workers.messages.channel import Wish
from workers.messages.events import Event, decode, encode
from workers.sandbox.spawn import Process
from workers.supervision.batch import Batch
from workers.supervision.footprint import Bounds, Footprint, Violation
from workers.supervision.lines import LineBuffer
from workers.supervision.ports import Deadlines, Ending, EndingKind, Journal, Speech
from workers.supervision.slices import Slices
from workers.supervision.verdict import verdict
from workers.supervision.wires import Wires

_TICK = 0.25  # s: the longest wait; memory and the log are looked at this often
_LONGEST_WAIT = 1.0  # s that one wait adds to a child's silence: after a suspend everybody was silent
_COMPLAINT = 2000  # characters of an error, at most
_STRENGTH: dict[Wish, int] = {"continue": 0, "turn": 1, "pause": 2, "stop": 3}


class Attempt:
    """The loop over what the child says, and its deadlines. Call `watch` once; `lost` when that raised LeaseLost."""

    def __init__(
        self, process: Process, wires: Wires, journal: Journal, deadlines: Deadlines, bounds: Bounds, speech: Speech,
        slices: Slices, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._process = process
        self._wires = wires
        self._journal = journal
        self._deadlines = deadlines
        self._speech = speech
        self._events = self._bytes = 0
        self._clock = clock
        self._slices = slices
        self._footprint = Footprint(process.tree, bounds, clock)
        self._lines = LineBuffer()
        self._batch = Batch(journal, clock, deadlines.batch)
        self._last: Event | None = None
        self._complaint = ""
        self._wanted: Wish = "continue"
        self._quiet = 0.0
        self._began = clock()
        self._beat_due = self._began
        self._kill_due = float("inf")
        self._left: Sequence[int] = ()

    def watch(self) -> Ending:
        """Until the child has ended or was ended. Raises LeaseLost and what else the journal raises."""
        violation: Violation | None = None
        forced = False
        try:
            while not self._process.exited():
                self._slices.check(_TICK)
                self._listen()
                self._wires.read_log()
                self._check()
                if self._clock() >= self._batch.due:
                    self._batch.flush()
                self._beat()
                if self._clock() >= self._kill_due:
                    forced = True
                    break
        except Violation as broken:
            violation = broken
        self._left = self._process.tree.end(0.5 if forced else 0.0)
        if violation is None or violation.cause != "protocol":
            violation = self._drain() or violation
        self._batch.flush()
        self._wires.read_log()
        return verdict(self._so_far("crashed"), self._process, self._wanted, violation, self._complaint)

    def lost(self) -> Ending:
        """Ends the child of a job that another worker has; nothing more is written."""
        self._left = self._process.tree.end(0.0)
        self._wires.read_log()
        code = self._process.end(0.0)
        return self._so_far("lost", "another worker owns this job now; what was saved is kept", code)

    def _listen(self) -> None:
        before = self._clock()
        timeout = min(_TICK, max(0.0, self._batch.due - before)) if self._slices.ours else 0.0
        chunk = self._wires.wait(timeout)
        if chunk:
            self._take(chunk)
            self._quiet = 0.0
        else:
            self._quiet += min(self._clock() - before, _LONGEST_WAIT)

    def _take(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        if self._bytes > self._speech.bytes:
            raise Violation("protocol", f"the child sent over the {self._speech.bytes / 2**20:g} MiB of events allowed")
        try:
            for line in self._lines.feed(chunk):
                self._events += 1
                if self._events > self._speech.events:
                    raise Violation("protocol", f"the child sent more than the {self._speech.events:,} events allowed")
                event = decode(line.decode())
                encode(event)  # refuses NaN and infinity, which json reads and no journal can keep
                self._batch.add(event, len(line))
                if event["kind"] in ("finished", "failed"):
                    self._last = event
                    self._kill_due = min(self._kill_due, self._clock() + self._deadlines.finish)
                elif event["kind"] == "log" and event.get("level") == "error":
                    self._complaint = str(event.get("text", ""))[:_COMPLAINT]
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            reason = str(error)[:300] or type(error).__name__
            raise Violation("protocol", f"the child sent something that is not an event: {reason}") from error

    def _check(self) -> None:
        if self._quiet > self._deadlines.silence:
            raise Violation(
                "silent", f"no sign of life for {self._deadlines.silence:g} s: it hangs or swaps, and was ended"
            )
        total = self._deadlines.total
        if total is not None and self._clock() - self._began - self._slices.waited > total:
            raise Violation("time", f"not done after {total:g} s; it was ended")
        self._footprint.check()

    def _beat(self) -> None:
        now = self._clock()
        if now < self._beat_due:
            return
        self._beat_due = now + self._deadlines.heartbeat
        wanted = self._journal.heartbeat()
        if _STRENGTH[wanted] <= _STRENGTH[self._wanted]:
            return
        self._wanted = wanted
        self._wires.say("pause" if wanted == "turn" else wanted)
        grace = {"turn": self._deadlines.turn, "pause": self._deadlines.pause}.get(wanted, self._deadlines.stop)
        self._kill_due = min(self._kill_due, self._clock() + grace)

    def _drain(self) -> Violation | None:
        # Every writer is dead, so what is in the pipe is all there is; half a line at its end was never an event.
        try:
            while chunk := self._wires.read_events():
                self._take(chunk)
        except Violation as broken:
            return broken
        return None

    def _so_far(self, kind: EndingKind, detail: str = "", code: int | None = None) -> Ending:
        log = self._wires.log.text()
        if self._left:
            log += f"\nnot to be ended: processes {', '.join(map(str, self._left))}; look at them with ps, and end them"
        return Ending(kind, "", detail, code, log, self._last)
