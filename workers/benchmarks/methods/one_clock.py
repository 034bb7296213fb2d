"""Live cells by one clock: every program that a run held for the best of an operator is timed anew, those of one operator in
turns with each other, and the runs' curves are drawn from that.

Runs of other minutes tell other figures of the same program, on a shared machine by a third; and each of them believes its
luckiest. What is timed in turns differs by what it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workers.benchmarks.cells import DONE, Cell, Cells, Key
from workers.benchmarks.identity import product_version
from workers.benchmarks.machine import Machine, Network
from workers.benchmarks.process import PartFailed, environment, result_of
from workers.benchmarks.progress import Progress
from workers.benchmarks.tally import retold
from workers.messages.whole import write_whole
from workers.tvm_backend import runtime

CLOCK = "clock"
LIVE = "live"
A_PROGRAM = 0.1
"""s for compiling one and timing it some times, roughly."""
TIMING = (
    "workers/networks",
    "workers/tvm_backend",
    "workers/benchmarks/bench.py",
    *(f"workers/benchmarks/methods/{part}.py" for part in ("retime", "one_clock")),
)

Asked = dict[str, dict[str, Any]]
Where = tuple[Any, ...]


def by_one_clock(cells: Sequence[Cell], clocks: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """`cells` with the figures of a clock where there is one of runs of their network, machine and version, the one that timed
    most of them; and those that this one did not time, which are none of the others: two clocks compare nothing."""
    timed, apart = list[Cell](), list[Cell]()
    largest: dict[Where, Cell] = {}
    contents = {content_of(cell) for cell in cells if _is_live(cell)}
    for clock in sorted(clocks, key=lambda one: (len(contents & one["cells"].keys()), str(one["ended"]))):
        largest[_where(clock, clock["version_of_runs"])] = clock
    for cell in cells:
        theirs = largest.get(_where(cell, cell["key"]["version"])) if _is_live(cell) else None
        if theirs is None or not contents & theirs["cells"].keys():
            timed.append(cell)
        elif (truths := theirs["cells"].get(content_of(cell))) is None:
            apart.append(cell)
        else:
            timed.append(retold(cell, truths))
    return timed, apart


def untimed(apart: Sequence[Cell]) -> str:
    """A line for each network of cells that a clock did not time."""
    names = dict.fromkeys(cell["name"] for cell in apart)
    counts = {name: sum(cell["name"] == name for cell in apart) for name in names}
    return "".join(
        f"{name} (live): {count} runs that the clock of the others did not time are left out; the same command times all anew\n"
        for name, count in counts.items()
    )


def content_of(cell: Cell) -> str:
    """Which run it is, and what that held."""
    bests = [[row["key"], *(best[-1] for best in row["bests"])] for row in cell["operators"]]
    text = json.dumps([Key(**cell["key"]).digest, bests])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _where(cell: Cell, version: str) -> Where:
    return *(cell["key"][name] for name in ("network", "cpu", "cores")), version


def _is_live(cell: Cell) -> bool:
    return bool(cell["key"]["layout"] == LIVE and cell["state"] == DONE)


class Clock:
    """Of one network's live cells of this machine and one version of the code, all of them that are there."""

    def __init__(self, network: Network, machine: Machine, version: str, cells: Cells, kind: str) -> None:
        """`kind` is that of the live cells, `version` theirs."""
        self._network, self._machine, self._version, self._cells = network, machine, version, cells
        here = network.sha256, machine.cpu, machine.cores, version
        every = (cell for cell in cells.all(kind) if _is_live(cell))
        self._timed = [cell for cell in every if _where(cell, cell["key"]["version"]) == here]
        together = hashlib.sha256("\n".join(sorted(map(content_of, self._timed))).encode()).hexdigest()[:12]
        self._key = Key(
            CLOCK, network.sha256, "all", 0, LIVE, together, machine.cpu, machine.cores, product_version(TIMING)
        )

    @property
    def label(self) -> str:
        return f"{self._network.name}: one clock for {len(self._timed)} runs"

    @property
    def claim(self) -> str:
        return self._key.digest

    @property
    def missing(self) -> bool:
        """Whether there are runs to compare that it did not time."""
        return len(self._timed) > 1 and self._cells.find(self._key, self._network.name) is None

    @property
    def estimate(self) -> float:
        rows = (row for cell in self._timed for row in cell["operators"])
        return A_PROGRAM * len({(row["key"], best[-1]) for row in rows for best in row["bests"]})

    def run(self, work: Path, progress: Progress) -> None:
        """Alone on the machine; goes on where it was broken off. Raises PartFailed."""
        work.mkdir(parents=True, exist_ok=True)
        kept = work / f"{self._key.digest}.json"
        seconds: dict[str, list[float]] = json.loads(kept.read_text()) if kept.is_file() else {}
        asked = asked_of(self._timed)
        left = {place: one for place, one in asked.items() if place not in seconds}

        def hear(event: dict[str, Any]) -> None:
            seconds[event["operator"]] = event["seconds"]
            write_whole(kept, json.dumps(seconds))
            progress.show(f"programs of {len(seconds)} of {len(asked)} operators timed in turns")

        spec = self._machine.spec(self._network, "auto", 0)
        env = environment(spec.threads, work) | runtime.environment(spec.threads)
        order = {"spec": spec.to_json(), "asked": left}
        result_of("workers.benchmarks.methods.retime", order, env, work / "retime.log", hear, progress.tick)
        told = {content_of(cell): _truths(cell, asked, seconds) for cell in self._timed}
        found = {"state": DONE, "reason": "", "cells": told, "version_of_runs": self._version}
        self._cells.keep(self._key, self._network.name, found)
        kept.unlink(missing_ok=True)


def asked_of(cells: Iterable[Cell]) -> Asked:
    """By operator, every program that any of these runs held. Raises PartFailed where their operators are not the same."""
    found: Asked = {}
    for cell in cells:
        for place, row in enumerate(cell["operators"]):
            one = found.setdefault(str(place), {"key": row["key"], "programs": []})
            if one["key"] != row["key"]:
                raise PartFailed(
                    f"operator {place} of one run is another than that of the others; run all of them again"
                )
            one["programs"] += [best[-1] for best in row["bests"]]
    return {place: {**one, "programs": sorted(set(one["programs"]))} for place, one in found.items()}


def _truths(cell: Cell, asked: Asked, seconds: dict[str, list[float]]) -> list[list[float]]:
    """Of each operator the seconds of what it held, in that order."""
    by_program = {place: dict(zip(one["programs"], seconds[place], strict=True)) for place, one in asked.items()}
    return [[by_program[str(place)][best[-1]] for best in row["bests"]] for place, row in enumerate(cell["operators"])]
