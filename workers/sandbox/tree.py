"""A process and everything it started, found in /proc and ended without leaving an orphan.

Members are found three ways, because each alone can be lost: by parent (lost when the leader, who inherits the children of
those that die, is gone), by session or group (lost after setsid, which a filter on system calls refuses), by a token in
the environment that every descendant inherits. What was seen once stays remembered.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

TREE_VARIABLE = "TUNINGSITE_TREE"

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_STEP = 0.01  # s between looks while waiting for processes to go
_STUBBORN = 5.0  # s after SIGKILL: longer means the kernel itself holds the process (uninterruptible sleep)
_STORM = 20.0  # s after which one who finds ever more of them gives up: whoever ends a tree has a lease to renew


@dataclass(frozen=True)
class _Seen:
    """One line of /proc. `began` is the start time in ticks: with the pid it names a process for good. `spent` is processor
    time, of all its threads, in ticks."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    threads: int
    began: int
    spent: int

    @property
    def alive(self) -> bool:
        # A process whose first thread has left is a zombie to look at, while its other threads go on.
        return self.state not in "ZX" or self.threads > 1

    @property
    def computes(self) -> bool:
        # Who waits for a disk (D) stops when it is back from the kernel.
        return self.alive and self.state not in "TtD"


def _look(pid: int) -> _Seen | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name in parentheses may itself hold spaces and parentheses: the fields begin after the last one.
    fields = text[text.rindex(b")") + 2 :].split()
    parent, group, session, user, system, threads, began = (int(fields[index]) for index in (1, 2, 3, 11, 12, 17, 19))
    return _Seen(pid, fields[0].decode(), parent, group, session, threads, began, user + system)


def _everything() -> Iterator[_Seen]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (seen := _look(int(name))) is not None:
            yield seen


def _carries(pid: int, token: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return False
    return any(variable == token or variable.startswith(token + b"/") for variable in variables)


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    """What is resident, too, where the process does not let itself be looked at."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith(b"Pss:"))
    except (OSError, StopIteration):
        return _resident(pid)


class Tree:
    """The descendants of one spawned leader of a session or group, itself included. For one thread."""

    def __init__(self, leader: int, token: str) -> None:
        self.leader = leader
        self.token = token
        self._mark = f"{TREE_VARIABLE}={token}".encode()
        seen = _look(leader)
        self._began = seen.began if seen is not None else -1
        self._known = {leader: self._began}  # pid -> start time
        self._groups: dict[int, int] = {}  # pid -> group, of those whose whole group is ours
        self._threads = 1

    def refresh(self, *, thorough: bool = False) -> list[int]:
        """Looks for members anew and returns the pids of those alive; `thorough` also reads every environment."""
        processes = {seen.pid: seen for seen in _everything()}
        leader = processes.get(self.leader)
        # A stranger may have been given the number of a leader that is long reaped; then its session is not ours.
        number = self.leader if leader is None or leader.began == self._began else None
        inside = {
            seen.pid
            for seen in processes.values()
            if number in (seen.session, seen.group) or self._known.get(seen.pid) == seen.began
        }
        if thorough:
            inside |= {pid for pid in processes if pid not in inside and _carries(pid, self._mark)}
        grew = True
        while grew:
            children = {seen.pid for seen in processes.values() if seen.parent in inside} - inside
            inside |= children
            grew = bool(children)
        self._known = {pid: processes[pid].began for pid in inside}
        self._threads = sum(max(1, processes[pid].threads) for pid in inside)  # a zombie has none, and its number
        self._groups = {
            pid: seen.group
            for pid in inside
            if (seen := processes[pid]).group in inside or number in (seen.session, seen.group)
        }
        return sorted(pid for pid in inside if processes[pid].alive)

    def threads(self) -> int:
        """Of the members seen at the last refresh, one for a zombie: what a kernel has numbers for."""
        return self._threads

    def resident(self) -> int:
        """Bytes of memory held by the members seen at the last refresh; pages they share count once for each."""
        return sum(_resident(pid) for pid in self._known)

    def proportional(self) -> int:
        """The same with pages shared out among those that have them; walks them, which takes 50 ms a resident gigabyte."""
        return sum(_proportional(pid) for pid in self._known)

    def processor(self) -> float:
        """Seconds of processor time that the members seen at the last refresh have had."""
        return sum(seen.spent for pid in self._known if (seen := _look(pid)) is not None) / _TICKS

    def stop(self) -> bool:
        """SIGSTOP to all; whether they soon stood still."""
        deadline = time.monotonic() + _STUBBORN
        while running := [pid for pid in self.refresh() if (seen := _look(pid)) is not None and seen.computes]:
            if time.monotonic() > deadline:
                return False
            self._signal(running, signal.SIGSTOP)
            time.sleep(_STEP)
        return True

    def go_on(self) -> None:
        """SIGCONT to all that `stop` stopped."""
        self._signal(self._known, signal.SIGCONT)

    def end(self, grace: float, clock: Callable[[], float] = time.monotonic) -> list[int]:
        """SIGTERM to the leader's group, `grace` seconds, SIGKILL to all; returns pids that even that did not end.

        All are stopped before the first is killed: one that forks and leaves is gone before a signal to its number comes,
        and what many fork is more than one look finds. The leader goes last: whatever loses its parent meanwhile comes to
        it, where it is found. It is left as a zombie for its own parent to reap, so that its number cannot be given to a
        stranger.
        """
        leader = _look(self.leader)
        if grace > 0 and leader is not None and leader.began == self._began:
            self.refresh()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGTERM)
            deadline = clock() + grace
            while clock() < deadline and (leader := _look(self.leader)) is not None and leader.alive:
                time.sleep(_STEP)
        if (leader := _look(self.leader)) is not None and leader.began == self._began:
            # First of all, as no look finds who has another number every time.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGSTOP)
        stopped: dict[int, int] = {}
        began = clock()
        deadline = began + _STUBBORN
        while alive := self.refresh(thorough=True):
            new = {pid: self._known[pid] for pid in alive if stopped.get(pid) != self._known[pid]}
            now = clock()
            if now > deadline:
                self._signal(alive, signal.SIGKILL)
                break
            if new:
                self._signal(new, signal.SIGSTOP)
                stopped |= new
                deadline = min(now + _STUBBORN, began + _STORM)
                continue
            self._signal([pid for pid in alive if pid != self.leader] or alive, signal.SIGKILL)
            time.sleep(_STEP)
        self._reap_adopted()
        return alive

    def _signal(self, pids: Collection[int], number: signal.Signals) -> None:
        """By groups where they are ours: a group has it at once, and what it was just forking with it.

        The kernel would also let the rest of a stopped group go on when the first of it is killed.
        """
        groups = {self._groups[pid] for pid in pids if pid in self._groups}
        if self.leader not in pids and number == signal.SIGKILL:
            groups.discard(self.leader)
        for group in groups:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
        for pid in pids:
            if self._groups.get(pid) not in groups:
                self._send(pid, number)

    @staticmethod
    def _send(pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

    def _reap_adopted(self) -> None:
        # These are our children only in a process that takes in orphans (a subreaper, or process 1).
        for pid in self._known:
            if pid != self.leader:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
