"""Memory that a run's processes hold, looked at when they tell something."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACE = 0.5
"""Least seconds between two looks: one takes a millisecond."""
SETTLED = 0.25
"""Of the tuning time after which growth counts: before, design spaces and first programs are still being made."""
_PROC = Path("/proc")


@dataclass(frozen=True)
class Look:
    """Bytes at one moment of tuning time: the `child` that tunes, all its workers, and the whole tree with its starter.

    Pages that processes share count once for each. `processes` are those of the tree.
    """

    clock: float
    trials: int
    processes: int
    child: int
    workers: int
    tree: int


class Memory:
    """Looks at all processes under this one; figures are of the child that runs `module`."""

    def __init__(self, module: str = "workers.child", root: int | None = None) -> None:
        self._module, self._root = module.encode(), root or os.getpid()
        self._looks: list[Look] = []
        self._peaks: dict[str, int] = {}
        self._due = 0.0

    def look(self, stage: str, now: float, clock: float, trials: int) -> None:
        """At most every `PACE` seconds of `now`; growth is of the stage "tuning"."""
        if now < self._due:
            return
        self._due = now + PACE
        child = workers = processes = 0
        tree = _resident(self._root)[0]
        for pid in _descendants(self._root):
            processes += 1
            held, peak = _resident(pid)
            tree += held
            if _runs(pid, self._module):
                child += held
                self._peaks[stage] = max(self._peaks.get(stage, 0), peak)
            else:
                workers += held
        if stage == "tuning" and child:
            self._looks.append(Look(clock, trials, processes, child, workers, tree))

    def figures(self) -> dict[str, Any]:
        """Bytes: "peak" of the child by stage, "tree" at its largest; from a quarter of the tuning time to its end the
        growth of child and workers, and how many measurements were made meanwhile."""
        found: dict[str, Any] = {"peak": dict(self._peaks), "tree": max((look.tree for look in self._looks), default=0)}
        if self._looks:
            later = [look for look in self._looks if look.clock >= SETTLED * self._looks[-1].clock]
            # The last events may be heard when the workers are gone already, and one that died is being replaced.
            most = max(look.processes for look in later)
            first, *_, end = [look for look in later if look.processes == most] * 2
            found["growth"] = {"child": end.child - first.child, "workers": end.workers - first.workers}
            found["measurements"] = end.trials - first.trials
        return found


def memory_lines(figures: dict[str, Any]) -> list[str]:
    """What there is to say of them."""
    peaks = ", ".join(f"{stage} {_mebibytes(peak)}" for stage, peak in figures.get("peak", {}).items())
    lines = [f"memory at its peak: {peaks}, whole tree while tuning {_mebibytes(figures['tree'])}"] if peaks else []
    if growth := figures.get("growth"):
        made = figures["measurements"]
        each = f", {growth['child'] / made / 1024:.1f} KiB each" if made else ""
        lines.append(
            f"growth over the last {made} measurements: {_mebibytes(growth['child'])}{each}; "
            f"workers {_mebibytes(growth['workers'])}"
        )
    return lines


def _mebibytes(size: float) -> str:
    return f"{size / 2**20:.0f} MiB"


def _descendants(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from _descendants(child)


def _resident(pid: int) -> tuple[int, int]:
    """Bytes now, and at most ever; zeros for a process that is gone."""
    found = {"VmRSS": 0, "VmHWM": 0}
    with suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] = 1024 * int(value.split()[0])
    return found["VmRSS"], found["VmHWM"]


def _runs(pid: int, module: bytes) -> bool:
    with suppress(OSError):
        return module in (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    return False
