"""The papers' pictures from our cells: a file each, named by what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workers.benchmarks import chart
from workers.benchmarks.cells import Cell
from workers.benchmarks.chart import Line
from workers.benchmarks.interval import Interval, median
from workers.benchmarks.methods.compare import (
    NO_REGRET,
    Measure,
    Runs,
    grouped,
    operator_quality,
    quality,
    quality_in_time,
    ratios,
    scored_a_search,
)
from workers.benchmarks.methods.reach import (
    curve_of,
    measurements_to_same,
    seconds_to_same,
    time_to_same,
)
from workers.benchmarks.methods.replayed import CURVE

BASES = {"curve": "sequential", "space": "autotvm"}
GRID = 120
FLOOR = 1e3 * NO_REGRET  # ms
LARGEST = 12
"""Operators of a network that have a picture each, as many as the papers have of one."""
Arms = Mapping[str, Runs]

BARS: tuple[tuple[str, Measure, str], ...] = (
    ("time", time_to_same, "time to within 1 % of the final latency of {base}, times less"),
    ("equal-time", quality_in_time, "speed of an operator after half the time of {base}, times its"),
    ("final", quality, "speed at the end, times that of {base}"),
    ("measurements", measurements_to_same, "measurements to the best of {base}, times fewer"),
    ("operator-time", seconds_to_same, "time to the best of {base} of an operator, times less"),
    ("operator-final", operator_quality, "speed of an operator at the end, times that of {base}"),
    ("steps", scored_a_search, "configurations scored to the best met, times fewer than {base}"),
)
ON_CURVES = ("time", "final")
"""What an operator is after so much time, and its measurements and steps, are as they were recorded, whatever the schedule."""


def draw_all(cells: Sequence[Cell], folder: Path) -> list[str]:
    """Draws everything there are cells for; the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    groups = grouped(cells)
    for (kind, network), arms in groups.items():
        where = f"{network} ({kind})"
        _latency(arms, where, folder / f"latency-{kind}-{network}.svg")
        _regret(arms, where, folder / f"regret-{kind}-{network}.svg")
        _shares(arms, where, folder / f"slots-{kind}-{network}.svg")
        _spent(arms, where, folder / f"clock-{kind}-{network}.svg")
        if kind != CURVE:
            _operators(arms, network, folder)
    for kind in sorted({kind for kind, _ in groups}):
        here = {network: arms for (of, network), arms in groups.items() if of == kind}
        base = BASES.get(kind) or _live_base(here)
        for name, measure, word in BARS:
            if kind != CURVE or name in ON_CURVES:
                _bars(here, base, measure, word.format(base=base), folder / f"{name}-{kind}.svg")
    return sorted(path.name for path in folder.glob("*.svg"))


def median_curve(arm: str, runs: Runs) -> Line:
    """(seconds, median latency in ms over the seeds) and its interval, from the time on when every seed has one."""
    curves = [curve_of(cell) for cell in runs.values()]
    if not curves or any(not curve.points for curve in curves):
        return Line(arm, [])
    begin = max(curve.points[0][0] for curve in curves)
    end = max(cell["seconds"] for cell in runs.values())
    times = np.geomspace(max(begin, 1e-3), max(end, 1.01 * begin), GRID)
    found = [[curve.at(float(moment)) or curve.points[0][1] for curve in curves] for moment in times]
    known = {row: Interval.of(row) for row in {tuple(row) for row in found}}
    intervals = [known[tuple(row)] for row in found]
    points = [(float(t), 1e3 * one.median) for t, one in zip(times, intervals, strict=True)]
    bounds = [(1e3 * one.bounds[0], 1e3 * one.bounds[1]) for one in intervals if one.bounds is not None]
    return Line(arm, points, bounds=bounds)


def _latency(arms: Arms, where: str, path: Path) -> None:
    """DynaTune, Figures 7 to 10, 14 to 18, 20, 21."""
    series = [median_curve(arm, runs) for arm, runs in arms.items()]
    chart.lines(series, f"Latency against tuning time, {where}", ("seconds of tuning", "latency, ms"), path)


def _regret(arms: Arms, where: str, path: Path) -> None:
    """DynaTune 4.1: cumulative regret against the best schedule in hindsight."""
    series = []
    for arm, runs in arms.items():
        tables = [dict(cell["regret"]) for cell in runs.values() if cell.get("regret")]
        # Of runs of other lengths other slots were kept.
        slots = sorted(set.intersection(*(set(table) for table in tables))) if tables else []
        if slots:
            values = [1e3 * float(np.median([table[slot] for table in tables])) for slot in slots]
            series.append(Line(arm, [(float(s), max(value, FLOOR)) for s, value in zip(slots, values, strict=True)]))
    words = ("slots", "cumulative regret, ms")
    chart.lines(series, f"Regret against the oracle, {where}", words, path, log=(False, True), stepped=False)


def _shares(arms: Arms, where: str, path: Path) -> None:
    """Which operators the time went to."""
    columns: dict[str, dict[str, float]] = {}
    for arm, runs in arms.items():
        total = sum(o["seconds"] for cell in runs.values() for o in cell["operators"]) or 1.0
        shares: dict[str, float] = {}
        for cell in runs.values():
            for operator in cell["operators"]:
                shares[operator["name"]] = shares.get(operator["name"], 0.0) + operator["seconds"] / total
        columns[arm] = shares
    chart.stacks(columns, f"Tuning time by operator, {where}", path)


def _spent(arms: Arms, where: str, path: Path) -> None:
    """DynaTune, Figure 12; Chameleon, Figures 7c and 11."""
    columns = {}
    for arm, runs in arms.items():
        total = sum(value for cell in runs.values() for value in cell["spent"].values()) or 1.0
        parts = sorted({part for cell in runs.values() for part in cell["spent"]})
        columns[arm] = {p: sum(cell["spent"].get(p, 0.0) for cell in runs.values()) / total for p in parts}
    chart.stacks(columns, f"Tuning time by part, {where}", path)


def _operators(arms: Arms, network: str, folder: Path) -> None:
    """Chameleon, Figures 9 and 12 to 14: speed against measurements, an operator a picture."""
    first: Any = next(iter(next(iter(arms.values())).values()))
    takes = [row["weight"] * (row["best"] or 0.0) for row in first["operators"]]
    for index in sorted(range(len(takes)), key=lambda index: -takes[index])[:LARGEST]:
        each = {arm: [cell["operators"][index] for cell in runs.values()] for arm, runs in arms.items()}
        met = [row for rows in each.values() for row in rows if row["series"]]
        # Of recorded parts the fastest there is is known; live it is the fastest that any run found.
        fastest = min((row.get("reachable", row["best"]) for row in met), default=0.0)
        series = [Line(arm, _speeds([row for row in rows if row["series"]], fastest)) for arm, rows in each.items()]
        title = f"{network}, {first['operators'][index]['name']}: speed against measurements"
        path = folder / f"measurements-{network}-{index}.svg"
        chart.lines(series, title, ("measurements", "share of the fastest"), path, log=(False, False))


def _speeds(rows: list[dict[str, Any]], fastest: float) -> list[tuple[float, float]]:
    """(trials, median over seeds of the `fastest` time, in s, over the best so far)."""
    if not rows:
        return []
    end = max(row["trials"] for row in rows)
    found = []
    for trial in np.unique(np.linspace(1, end, GRID).astype(int)):
        best = [min((s[3] for s in row["series"] if s[0] <= trial), default=np.inf) for row in rows]
        found.append((float(trial), float(median([fastest / b for b in best]))))
    return found


def _bars(networks: Mapping[str, Arms], base: str, measure: Measure, word: str, path: Path) -> None:
    """DynaTune's 'times faster' and Figure 11, Chameleon's Figures 7a, 7b, 8 (diverse sampling beside adaptive) and 10,
    AdaTune's time to equal quality and speed in equal time."""
    groups = {}
    for network, arms in networks.items():
        if base in arms:
            found = {arm: ratios(arms[base], runs, measure) for arm, runs in arms.items() if arm != base}
            groups[network] = {arm: Interval.of(values) for arm, values in found.items() if values}
    if any(groups.values()):
        chart.bars(groups, word[0].upper() + word[1:], "times", path)


def _live_base(networks: Mapping[str, Arms]) -> str:
    present = {arm for arms in networks.values() for arm in arms}
    return next((base for base in ("sequential", "autotvm") if base in present), "autotvm")
