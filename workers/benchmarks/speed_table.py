"""The table of `benchmark speed`: medians over the seeds, one block a network and layout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from statistics import geometric_mean, median, median_low
from typing import NamedTuple

import numpy as np

from workers.benchmarks.again import EARLY_SHARE
from workers.benchmarks.cells import DONE, VOID, Cell, by_versions
from workers.benchmarks.curve import Curve
from workers.benchmarks.speed_blocks import AGAIN, THEIRS, Block, SpeedUp, blocks, curve_of, share_of_first
from workers.benchmarks.text_table import aligned, milliseconds, number
from workers.headless.display import human

SEARCHING = ("search", "decision", "bookkeeping")
"""Parts of a run's clock."""


def table(cells: Sequence[Cell]) -> str:
    """Every block, what does not count, and the geometric means over the networks of a machine."""
    parts, compared = [], blocks(cells)
    faster: dict[tuple[str, str, str, str], list[_Faster]] = defaultdict(list)
    for block in compared:
        rows = [_row(block, arm, budget) for arm, budget in block.arms]
        parts.append(f"{block.title}, {block.days}\n{aligned([_head(block), *rows])}")
        for arm, budget in block.arms:
            for peer in block.peers if arm not in THEIRS else ():
                if (one := _Faster.of(block, block.of(arm, budget), peer)).ups:
                    faster[block.layout, f"{arm} ({budget})", peer, block.machine].append(one)
    parts += [
        f"{cell['name']} {cell['key']['arm']} seed {cell['key']['seed']}: {cell['state']}: {cell['reason']}\n"
        for cell in cells
        if cell["state"] != DONE
    ]
    parts += [
        f"{block.name} {cell['key']['arm']} seed {cell['key']['seed']}: {peer} tuned other operators; run {peer} again\n"
        for block in compared
        for arm in block.arms
        for cell in block.of(*arm)
        for peer in block.peers
        if block.stray(cell, peer)
    ]
    parts += [_second(cell) for cell in cells if cell["state"] == DONE and cell["key"]["arm"] == AGAIN]
    several = len({machine for *_, machine in faster}) > 1
    means = [
        f"{arm}, {layout} layout{f', {machine}' if several else ''}: {_mean(found, peer)}\n"
        for (layout, arm, peer, machine), found in sorted(faster.items())
    ]
    means += _over_runtime(compared, several)
    return "\n".join([*parts, "".join(means), NOTES])


class _Faster(NamedTuple):
    """The runs of an arm in one block, and those of the peer that they are compared with."""

    ups: list[SpeedUp]
    ours: list[Cell]
    theirs: list[Cell]

    @classmethod
    def of(cls, block: Block, cells: list[Cell], peer: str) -> _Faster:
        theirs = [found for cell in cells if (found := block.peer(cell, peer)) is not None]
        return cls(block.speed_ups(cells, peer), cells, theirs)


def _over_runtime(found: Sequence[Block], several: bool) -> list[str]:
    """Of every arm and budget of ours the geometric mean over networks, each the median of its seeds."""
    ratios: dict[tuple[str, str, str], dict[str, float]] = {}
    made: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for block in found:
        for arm, budget in block.arms:
            timed = [cell["ratio"] for cell in block.of(arm, budget) if cell["state"] == DONE and cell["ratios"]]
            if timed and arm not in THEIRS:
                ratios.setdefault((arm, budget, block.machine), {})[block.cells[0]["key"]["network"]] = median(timed)
                made[arm, budget, block.machine] += block.of(arm, budget)
    return [
        f"{arm} ({budget}){f', {machine}' if several else ''}: {geometric_mean(by_network.values()):.2f} of ONNX Runtime's "
        f"time, geometric mean of {len(by_network)} networks{by_versions(made[arm, budget, machine])}\n"
        for (arm, budget, machine), by_network in sorted(ratios.items())
        if len(by_network) > 1
    ]


NOTES = (
    "Seconds of tuning; milliseconds of latency; medians over the seeds. sum: weight x best latency over the operators,\n"
    "complete: when every operator had one, and the sum then; each arm's by what times its candidates. searching: share of\n"
    "the tuning that search, decisions and bookkeeping take, where an arm tells it. by our clock: the\n"
    "final programs once more, just before the library is timed (a core a thread, weights that the caches have forgotten).\n"
    "to stock's: seconds until the sum was that of stock's end, the lesser of both, with the same seed or stock's first;\n"
    "stock's time /: the time stock itself needed over it. warm: stock with builders that are kept, and what it reached\n"
    "itself. TVM's arms take an operator's trials in batches of 64, or fewer: whose trials are one batch is searched once.\n"
    "end to end, ONNX RT: in the quickest quarter of turns (of TVM's arms before 2026-11-23 the median of 200 runs).\n"
    "/ sum: end to end over the sum by our clock. / untuned: over TVM without schedules, of runs of ten minutes or more.\n"
    "verified: whether all libraries compute what ONNX Runtime does, of runs that tell it.\n"
    "Ratio: end to end against ONNX Runtime, the median of turns (their quartiles).\n"
    "A figure that a later measurement of the same program corrected counts as corrected from the start.\n"
)


def _head(block: Block) -> tuple[str, ...]:
    moments = (f"at {human(moment).removesuffix(' 00 s')}" for moment in block.milestones)
    before, after = (
        ("arm", "seeds", "operators", "tuning", "tried", "tried/s", "searching", "complete", "then"),
        ("sum", "by our clock", "end to end", "/ sum", "/ untuned", "verified", "ONNX RT"),
    )
    against = (word for peer in block.peers for word in (f"to {peer}'s", f"{peer}'s time /"))
    return (*before, *moments, *after, "ratio", *against)


def _row(block: Block, arm: str, budget: str) -> tuple[str, ...]:
    cells = block.of(arm, budget)
    done = [cell for cell in cells if cell["state"] == DONE]
    void = sum(cell["state"] == VOID for cell in cells)

    def against(peer: str) -> tuple[str, str]:
        reached = [block.reached(cell, peer) for cell in done if block.peer(cell, peer) is not None]
        return _median_reached(reached), _median_up(block.speed_ups(done, peer))

    def middle(figure: Callable[[Cell], float | None]) -> float | None:
        found = [value for value in map(figure, done) if value is not None]
        return median(found) if found else None

    return (
        f"{arm} ({budget})",
        f"{len(done)}{f' + {void} void' if void else ''}",
        number(middle(lambda cell: cell["tuning"].get("operators")), 0),
        number(middle(lambda cell: cell["tuning"]["seconds"]), 0),
        number(middle(lambda cell: cell["tuning"]["trials"]), 0),
        number(middle(lambda cell: cell["tuning"]["trials"] / cell["tuning"]["seconds"]), 2),
        _percent(middle(_searching)),
        number(middle(lambda cell: curve_of(cell).complete), 0),
        milliseconds(middle(lambda cell: curve_of(cell).first)),
        *(_at(done, moment) for moment in block.milestones),
        milliseconds(middle(lambda cell: curve_of(cell).final)),
        milliseconds(middle(lambda cell: cell["tuning"].get("judged"))),
        milliseconds(middle(lambda cell: _timed(cell, "end_to_end"))),
        number(middle(_over_sum), 2),
        number(middle(_over_untuned), 4),
        _verified(done),
        milliseconds(middle(lambda cell: _timed(cell, "onnxruntime"))),
        _ratio(done),
        *(figure for peer in block.peers for figure in against(peer)),
    )


def _second(cell: Cell) -> str:
    """Sums of two runs are of other moments; by our clock the programs of both are timed in turns."""
    tuning, first = cell["tuning"], cell["tuning"]["first"]
    seconds, final = Curve.of(first["curve"]).points[-1]
    share = share_of_first(cell, final)
    # Cells of the version before timed the two apart.
    judged, early = tuning.get("first_judged", first.get("judged")), tuning.get("early")
    return (
        f"{cell['name']} seed {cell['key']['seed']}: a first run was at its {milliseconds(final)} ms after {seconds:.0f} s, "
        f"a second {'never' if share is None else f'after {share:.1%} of that time'}; by our clock the first's programs take "
        f"{milliseconds(judged)} ms, the second's {milliseconds(tuning['judged'])} ms"
        + (f", and those it had after {EARLY_SHARE:.0%} of that time {milliseconds(early)} ms" if early else "")
        + "\n"
    )


def _ratio(done: list[Cell]) -> str:
    """Median over the seeds, and the quartiles of all turns."""
    timed = [cell for cell in done if cell["ratios"]]
    if not timed:
        return number(None)
    turns = [ratio for cell in timed for ratio in cell["ratios"]]
    lower, upper = np.quantile(turns, (0.25, 0.75))
    return f"{median(cell['ratio'] for cell in timed):.2f} ({lower:.2f} to {upper:.2f})"


def _timed(cell: Cell, library: str) -> float | None:
    """Seconds of an inference in the quickest quarter of the turns: the sum of operators waits for good moments of the machine
    too. None where they were disturbed and only the tuning counts.

    Cells of versions before tell them of ours alone, as the run itself found them, and of others the median of all runs.
    """
    if not cell[library]:
        return None
    told = cell.get("quickest") or cell["tuning"].get("summary", {})
    return float(told.get(library) or cell[library]["median"])


def _searching(cell: Cell) -> float | None:
    """Share of the tuning in which nothing was compiled or timed, nor waited for."""
    share = cell["tuning"].get("summary", {}).get("share", {})
    return sum(share.get(part, 0.0) for part in SEARCHING) if share else None


def _percent(share: float | None) -> str:
    return number(share) if share is None else f"{share:.1%}"


def _over_sum(cell: Cell) -> float | None:
    """End to end over the sum of the operators by our clock."""
    whole, parts = _timed(cell, "end_to_end"), cell["tuning"].get("judged", curve_of(cell).final)
    return whole / parts if whole and parts else None


def _over_untuned(cell: Cell) -> float | None:
    """End to end over what the import takes as plain loops, which long runs look at before they begin."""
    whole, untuned = _timed(cell, "end_to_end"), cell["tuning"].get("summary", {}).get("untuned")
    return whole / untuned if whole and untuned else None


def _verified(done: list[Cell]) -> str:
    """Whether the libraries of all seeds compute what the network does; nothing of an arm that does not tell it."""
    told = [summary["verified"] for cell in done if "verified" in (summary := cell["tuning"].get("summary", {}))]
    return number(None) if not told else "yes" if all(told) else "no"


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


def _median_up(ups: list[SpeedUp]) -> str:
    """Never getting there counts as slower than everything, also where it is one of the two in the middle."""
    ratios = [up.ratio if up.arrived else 0.0 for up in ups]
    if not ratios:
        return number(None)
    return number(median(ratios), 2) if median_low(ratios) else "never"


def _mean(found: Sequence[_Faster], peer: str) -> str:
    """As `_means` says, and by how many versions of the code."""
    ours, theirs = (chain.from_iterable(side) for side in zip(*((one.ours, one.theirs) for one in found), strict=True))
    return f"{_means([one.ups for one in found], peer)}{by_versions(ours, theirs)}"


def _means(ups: Sequence[Sequence[SpeedUp]], peer: str) -> str:
    """Of each network's runs. A network of several seeds counts once. Those that arrive alone would flatter: with the others,
    whose tuning ended before, the mean is an upper bound."""
    there = [[up.ratio for up in runs if up.arrived] for runs in ups]
    arrived, runs_in_all = (sum(map(len, found)) for found in (there, ups))
    pairs = f"{arrived} of {runs_in_all} pairs of network and seed"
    if not arrived:
        return f"reaches {peer}'s final latency in {pairs}"
    said = f"reaches {peer}'s final latency in {pairs}, {_by_network(there):.2f} times as fast as {peer}"
    if arrived == runs_in_all:
        return f"{said} (geometric mean of the {len(ups)} network{'s'[: len(ups) > 1]})"
    every = _by_network([[up.ratio for up in runs] for runs in ups])
    return (
        f"{said} (geometric mean of these); at most {every:.2f} times with the others counted as arriving when their "
        "tuning ended"
    )


def _by_network(ratios: Sequence[Sequence[float]]) -> float:
    """Geometric mean over networks, each by that of its runs."""
    return geometric_mean([geometric_mean(runs) for runs in ratios if runs])
