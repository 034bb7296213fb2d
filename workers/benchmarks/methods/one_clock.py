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
from workers.benchmarks.process import environment, result_of
from workers.benchmarks.progress import Progress
from workers.benchmarks.tally import retold
from workers.headless.whole import write_whole
from workers.tvm_backend import runtime

CLOCK = "clock"
LIVE = "live"
A_PROGRAM = 0.25
"""s for compiling one and timing it some times, until it was seen."""
TIMING = (
    "workers/networks",
    "workers/tvm_backend",
    "workers/benchmarks/bench.py",
    *(f"workers/benchmarks/methods/{part}.py" for part in ("retime", "one_clock")),
)

Asked = dict[str, dict[str, Any]]


def by_one_clock(cells: Sequence[Cell], clocks: Sequence[Cell]) -> list[Cell]:
    """`cells` with the figures of the clock of their network that timed most of them. Where there is one, live cells that it
    did not time are left out: two clocks compare nothing."""
    digests = {digest_of(cell) for cell in cells if cell["key"]["layout"] == LIVE}
    largest: dict[str, Cell] = {}
    for clock in sorted(clocks, key=lambda one: (len(digests & one["cells"].keys()), str(one["ended"]))):
        largest[clock["key"]["network"]] = clock
    found = []
    for cell in cells:
        network, live = cell["key"]["network"], cell["key"]["layout"] == LIVE
        if not live or network not in largest:
            found.append(cell)
        elif (truths := largest[network]["cells"].get(digest_of(cell))) is not None:
            found.append(retold(cell, truths))
    return found


def digest_of(cell: Cell) -> str:
    return Key(**cell["key"]).digest


class Clock:
    """Of one network's live cells of one version of the code, all of them that are there."""

    def __init__(self, network: Network, machine: Machine, version: str, cells: Cells, kind: str) -> None:
        """`kind` is that of the live cells, `version` theirs."""
        self._network, self._machine, self._cells = network, machine, cells
        every = (cell for cell in cells.all(kind) if cell["key"]["layout"] == LIVE and cell["state"] == DONE)
        self._timed = [
            cell for cell in every if (cell["key"]["network"], cell["key"]["version"]) == (network.sha256, version)
        ]
        together = hashlib.sha256("\n".join(sorted(map(digest_of, self._timed))).encode()).hexdigest()[:12]
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
        return A_PROGRAM * sum(len(one["programs"]) for one in asked_of(self._timed).values())

    def run(self, work: Path, progress: Progress) -> None:
        """Alone on the machine; goes on where it was broken off. Raises PartFailed."""
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
        told = {digest_of(cell): _truths(cell, asked, seconds) for cell in self._timed}
        self._cells.keep(self._key, self._network.name, {"state": DONE, "reason": "", "cells": told})
        kept.unlink(missing_ok=True)


def asked_of(cells: Iterable[Cell]) -> Asked:
    """By operator, every program that any of these runs held."""
    found: Asked = {}
    for cell in cells:
        for place, row in enumerate(cell["operators"]):
            one = found.setdefault(str(place), {"key": row["key"], "programs": []})
            one["programs"] += [held[-1] for held in row["held"]]
    return {place: {**one, "programs": sorted(set(one["programs"]))} for place, one in found.items()}


def _truths(cell: Cell, asked: Asked, seconds: dict[str, list[float]]) -> list[list[float]]:
    """Of each operator the seconds of what it held, in that order."""
    by_program = {place: dict(zip(one["programs"], seconds[place], strict=True)) for place, one in asked.items()}
    return [[by_program[str(place)][held[-1]] for held in row["held"]] for place, row in enumerate(cell["operators"])]
