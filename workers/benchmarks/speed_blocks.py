"""Which cells of `benchmark speed` are compared with which, and what is read from their curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.benchmarks.cells import DONE, Cell, days_of
from workers.benchmarks.chart import Line
from workers.benchmarks.curve import Curve

MILESTONES = (30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Seconds of tuning at which the curves are read."""
THEIRS = ("stock", "warm")
"""Arms that are TVM's, the reference of all first."""
AGAIN = "again"
"""The arm of a second run, which begins with what a first one found."""


@dataclass(frozen=True)
class SpeedUp:
    """The peer's own time to its final sum over ours; what it searched afterwards without finding anything is left out. A
    run that never `arrived` gets at most the `ratio` to the whole of its own tuning time."""

    ratio: float
    arrived: bool


@dataclass(frozen=True)
class Block:
    """Cells that are compared: one network on one machine, TVM's arms in one layout, ours in their own."""

    name: str
    layout: str
    machine: str
    cells: tuple[Cell, ...]

    @property
    def title(self) -> str:
        what = "the same module" if self.layout == "same" else "TVM's arms on the plain import"
        return f"{self.name}, {what}, {self.machine}"

    @property
    def days(self) -> str:
        """On which its runs ended."""
        return days_of(self._done())

    @property
    def arms(self) -> list[tuple[str, str]]:
        """(arm, budget), TVM's first."""
        found = {(cell["key"]["arm"], cell["key"]["budget"]) for cell in self.cells}
        return sorted(found, key=lambda arm: (arm[0] not in THEIRS, arm))

    @property
    def milestones(self) -> list[float]:
        """Those that some run tuned long enough for."""
        longest = max((cell["tuning"]["seconds"] for cell in self.cells if cell["state"] == DONE), default=0.0)
        return [moment for moment in MILESTONES if moment <= longest]

    @property
    def lines(self) -> list[Line]:
        """A line in ms to the end of its tuning for every finished cell."""
        return [
            Line(
                f"{cell['key']['arm']} ({cell['key']['budget']})",
                [(seconds, 1e3 * latency) for seconds, latency in curve_of(cell).points],
                cell["tuning"]["seconds"],
            )
            for cell in self._done()
        ]

    def of(self, arm: str, budget: str) -> list[Cell]:
        """A cell a seed, those of the version that came to an end last."""
        found = [cell for cell in self.cells if (cell["key"]["arm"], cell["key"]["budget"]) == (arm, budget)]
        last = max(found, key=lambda cell: (cell["state"] == DONE, str(cell["ended"])), default=None)
        return [cell for cell in found if last and cell["key"]["version"] == last["key"]["version"]]

    @property
    def peers(self) -> list[str]:
        """Arms of TVM's that ours are compared with: those that finished."""
        done = {cell["key"]["arm"] for cell in self._done()}
        return [arm for arm in THEIRS if arm in done]

    def peer(self, cell: Cell, arm: str) -> Cell | None:
        """The arm's finished cell that was given the most trials; of the same operators where both tuned the same module. Of
        the same seed where it has that one, else of its first: TVM's arms take most of an hour, and one may have to do. A
        second run has none, for the time that its first one took is not on its clock, nor has what did not come to an end."""
        if cell["state"] != DONE or cell["key"]["arm"] == AGAIN:
            return None
        found = [c for c in self._finished(arm) if self.layout != "same" or key_of(c) == key_of(cell)]
        seed = cell["key"]["seed"]
        same = [c for c in found if c["key"]["seed"] == seed]
        return max(same or found, key=lambda c: (int(c["tuning"]["trials"]), -c["key"]["seed"]), default=None)

    def stray(self, cell: Cell, arm: str) -> bool:
        """Whether the arm tuned other operators: the code that imports networks changed in between."""
        ours = cell["state"] == DONE and cell["key"]["arm"] != AGAIN
        return ours and self.peer(cell, arm) is None and bool(self._finished(arm))

    def reached(self, cell: Cell, arm: str) -> float | None:
        """Seconds until its sum was that of the arm's end; None where it never was, and where the arm has no such cell."""
        theirs = self.peer(cell, arm)
        final = bar(theirs) if theirs else None
        return None if final is None else curve_of(cell).time_to(final)

    def speed_ups(self, cells: Sequence[Cell], arm: str) -> list[SpeedUp]:
        """One a cell that has a peer."""
        found = []
        for cell in cells:
            theirs = self.peer(cell, arm)
            if theirs is None:
                continue
            reached = self.reached(cell, arm)
            taken = cell["tuning"]["seconds"] if reached is None else reached
            found.append(SpeedUp(curve_of(theirs).points[-1][0] / max(taken, 1e-9), reached is not None))
        return found

    def _finished(self, arm: str) -> list[Cell]:
        return [cell for cell in self._done() if cell["key"]["arm"] == arm]

    def _done(self) -> list[Cell]:
        """Those of the versions that the table shows."""
        return [cell for arm in self.arms for cell in self.of(*arm) if cell["state"] == DONE]


def curve_of(cell: Cell) -> Curve:
    """Of a finished cell."""
    return Curve.of(cell["tuning"]["curve"])


def share_of_first(cell: Cell, latency: float) -> float | None:
    """Of the seconds in which the first run came to its end, those in which the second was at `latency`; None: never."""
    reached = curve_of(cell).time_to(latency)
    return None if reached is None else reached / Curve.of(cell["tuning"]["first"]["curve"]).points[-1][0]


def key_of(cell: Cell) -> str:
    """Of the operators that were tuned."""
    return str(cell["tuning"].get("key"))


def bar(theirs: Cell) -> float | None:
    """What is to be reached: TVM's final sum by its own runner or by our stopwatch, whichever is less."""
    judged, final = theirs["tuning"].get("judged"), curve_of(theirs).final
    return final if judged is None or final is None else min(final, judged)


def blocks(cells: Sequence[Cell]) -> list[Block]:
    """In the order of their names; ours are in every layout that was measured."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        key = cell["key"]
        found.setdefault((key["network"], f"{key['cpu']}, {key['cores']} threads"), []).append(cell)
    made = []
    for (_, machine), group in found.items():
        layouts = sorted({cell["key"]["layout"] for cell in group} - {"own"}, reverse=True) or ["same"]
        for layout in layouts:
            chosen = tuple(cell for cell in group if cell["key"]["layout"] in (layout, "own"))
            made.append(Block(group[-1]["name"], layout, machine, chosen))
    return sorted(made, key=lambda block: (block.name, block.layout))
