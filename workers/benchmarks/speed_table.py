"""The table of `benchmark speed`: medians over the seeds, one block a network and layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from workers.benchmarks.cells import DONE, VOID, Cell
from workers.benchmarks.chart import Line
from workers.benchmarks.curve import Curve
from workers.benchmarks.progress import human
from workers.benchmarks.text_table import aligned, milliseconds, number

MILESTONES = (30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Seconds of tuning at which the curves are read."""
REFERENCE = "stock"


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
    def arms(self) -> list[tuple[str, str]]:
        """(arm, budget), TVM's first."""
        found = {(cell["key"]["arm"], cell["key"]["budget"]) for cell in self.cells}
        return sorted(found, key=lambda arm: (arm[0] not in ("stock", "warm"), arm))

    @property
    def milestones(self) -> list[float]:
        """Those that some run tuned long enough for."""
        longest = max((cell["tuning"]["seconds"] for cell in self.cells if cell["state"] == DONE), default=0.0)
        return [moment for moment in MILESTONES if moment <= longest]

    @property
    def head(self) -> tuple[str, ...]:
        moments = (f"at {human(moment).removesuffix(' 00 s')}" for moment in self.milestones)
        before, after = (
            ("arm", "seeds", "tuning", "tried", "tried/s", "complete"),
            ("sum", "by our clock", "end to end", "ONNX RT"),
        )
        return (*before, *moments, *after, "ratio", "to stock's", "stock's time /")

    @property
    def lines(self) -> list[Line]:
        """A line in ms to the end of its tuning for every finished cell."""
        return [
            Line(
                cell["key"]["arm"],
                [(seconds, 1e3 * latency) for seconds, latency in curve_of(cell).points],
                cell["tuning"]["seconds"],
            )
            for cell in self.cells
            if cell["state"] == DONE
        ]

    def of(self, arm: str, budget: str) -> list[Cell]:
        return [cell for cell in self.cells if (cell["key"]["arm"], cell["key"]["budget"]) == (arm, budget)]

    def stock(self, cell: Cell) -> Cell | None:
        """The finished stock cell of its seed that was given the most trials; of the same operators where both tuned the
        same module."""
        found = [c for c in self._stocks(cell) if self.layout != "same" or key_of(c) == key_of(cell)]
        return max(found, key=lambda stock: int(stock["tuning"]["trials"]), default=None)

    def stray(self, cell: Cell) -> bool:
        """Whether stock tuned with its seed, but other operators: the code that imports networks changed in between."""
        return cell["state"] == DONE and self.stock(cell) is None and bool(self._stocks(cell))

    def _stocks(self, cell: Cell) -> list[Cell]:
        wanted = (REFERENCE, cell["key"]["seed"], DONE)
        return [c for c in self.cells if (c["key"]["arm"], c["key"]["seed"], c["state"]) == wanted]


@dataclass(frozen=True)
class SpeedUp:
    """Stock's own time to its final sum over ours; what it searched afterwards without finding anything is left out. A run
    that never `arrived` gets at most the `ratio` to the whole of its own tuning time."""

    ratio: float
    arrived: bool


def curve_of(cell: Cell) -> Curve:
    return Curve.of(cell["tuning"]["curve"])


def key_of(cell: Cell) -> str:
    """Of the operators that were tuned."""
    return str(cell["tuning"].get("key"))


def bar(stock: Cell) -> float | None:
    """What is to be reached: stock's final sum by its own runner or by our stopwatch, whichever is less."""
    judged, final = stock["tuning"].get("judged"), curve_of(stock).final
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


def table(cells: Sequence[Cell]) -> str:
    """Every block, what does not count, and the geometric means over networks and seeds."""
    parts = []
    faster: dict[tuple[str, str], list[SpeedUp]] = {}
    for block in blocks(cells):
        rows = [_row(block, arm, budget) for arm, budget in block.arms]
        parts.append(f"{block.title}\n{aligned([block.head, *rows])}")
        for arm, budget in block.arms:
            faster.setdefault((block.layout, f"{arm} ({budget})"), []).extend(_speed_ups(block, block.of(arm, budget)))
    parts += [
        f"{cell['name']} {cell['key']['arm']} seed {cell['key']['seed']}: {cell['state']}: {cell['reason']}\n"
        for cell in cells
        if cell["state"] != DONE
    ]
    parts += [
        f"{block.name} {cell['key']['arm']} seed {cell['key']['seed']}: stock tuned other operators; run stock again\n"
        for block in blocks(cells)
        for cell in block.cells
        if block.stray(cell)
    ]
    means = [
        f"{arm}, {layout} layout: {_mean(ups)}\n"
        for (layout, arm), ups in sorted(faster.items())
        if ups and not arm.startswith(REFERENCE)
    ]
    return "\n".join([*parts, "".join(means), NOTES])


NOTES = (
    "Seconds of tuning; milliseconds of latency; medians over the seeds. sum: weight x best latency over the operators,\n"
    "complete: when every operator had one; each arm's by what times its candidates. by our clock: TVM's final programs once\n"
    "more, timed as ours are (a core a thread, weights that the caches have forgotten). to stock's: seconds until the sum was\n"
    "that of stock's end, the lesser of both, with the same seed; stock's time /: the time stock itself needed over it.\n"
    "Ratio: end to end against ONNX Runtime, measured in turns.\n"
    "A figure that a later measurement of the same program corrected counts as corrected from the start.\n"
)


def _mean(ups: Sequence[SpeedUp]) -> str:
    """Those that arrive alone would flatter: with the others, whose tuning ended before, the mean is an upper bound."""
    there = [up.ratio for up in ups if up.arrived]
    pairs = f"{len(there)} of {len(ups)} pairs of network and seed"
    if not there:
        return f"reaches stock's final latency in {pairs}"
    said = f"reaches stock's final latency in {pairs}, {geometric_mean(there):.2f} times as fast as stock"
    if len(there) == len(ups):
        return f"{said} (geometric mean)"
    every = geometric_mean([up.ratio for up in ups])
    return (
        f"{said} (geometric mean of these); at most {every:.2f} times with the others counted as arriving when their "
        "tuning ended"
    )


def _row(block: Block, arm: str, budget: str) -> tuple[str, ...]:
    cells = block.of(arm, budget)
    done = [cell for cell in cells if cell["state"] == DONE]
    void = sum(cell["state"] == VOID for cell in cells)
    reached = [_reached(block, cell) for cell in done if block.stock(cell) is not None]
    ups = _speed_ups(block, done)

    def middle(figure: Callable[[Cell], float | None]) -> float | None:
        found = [value for value in map(figure, done) if value is not None]
        return median(found) if found else None

    return (
        f"{arm} ({budget})",
        f"{len(done)}{f' + {void} void' if void else ''}",
        number(middle(lambda cell: cell["tuning"]["seconds"]), 0),
        number(middle(lambda cell: cell["tuning"]["trials"]), 0),
        number(middle(lambda cell: cell["tuning"]["trials"] / cell["tuning"]["seconds"]), 2),
        number(middle(lambda cell: curve_of(cell).complete), 0),
        *(_at(done, moment) for moment in block.milestones),
        milliseconds(middle(lambda cell: curve_of(cell).final)),
        milliseconds(middle(lambda cell: cell["tuning"].get("judged"))),
        milliseconds(middle(lambda cell: float(cell["end_to_end"]["median"]))),
        milliseconds(middle(lambda cell: float(cell["onnxruntime"]["median"]))),
        number(middle(lambda cell: cell["ratio"]), 2),
        _median_reached(reached),
        _median_up(ups),
    )


def _at(done: list[Cell], moment: float) -> str:
    """Median over the seeds that tuned so long; nothing when one of them was not complete yet."""
    values = [curve_of(cell).at(moment) for cell in done if cell["tuning"]["seconds"] >= moment]
    there = [value for value in values if value is not None]
    return milliseconds(median(there) if there and len(there) == len(values) else None)


def _median_reached(reached: list[float | None]) -> str:
    """Never reaching it counts as later than everything."""
    if not reached:
        return number(None)
    middle = median(float("inf") if seconds is None else seconds for seconds in reached)
    return "never" if middle == float("inf") else number(middle, 0)


def _reached(block: Block, cell: Cell) -> float | None:
    stock = block.stock(cell)
    final = bar(stock) if stock else None
    return None if final is None else curve_of(cell).time_to(final)


def _median_up(ups: list[SpeedUp]) -> str:
    """Never getting there counts as slower than everything."""
    middle = median(up.ratio if up.arrived else 0.0 for up in ups) if ups else None
    return "never" if middle == 0 else number(middle, 2)


def _speed_ups(block: Block, cells: Sequence[Cell]) -> list[SpeedUp]:
    """One a seed that stock has too."""
    found = []
    for cell in cells:
        stock = block.stock(cell)
        if stock is None or cell["state"] != DONE:
            continue
        reached = _reached(block, cell)
        taken = cell["tuning"]["seconds"] if reached is None else reached
        found.append(SpeedUp(curve_of(stock).points[-1][0] / max(taken, 1e-9), reached is not None))
    return found
