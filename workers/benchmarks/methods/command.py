"""`benchmark methods`: networks x methods x seeds at equal budget, on landscapes or live; pictures and the papers' claims."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from workers.benchmarks.cells import DONE, Cell, Cells
from workers.benchmarks.filling import claimed, fill, in_turn
from workers.benchmarks.methods.arms import arm_named
from workers.benchmarks.methods.claims import evaluated, table
from workers.benchmarks.methods.compare import left_out, older_prices, summary, versions_apart
from workers.benchmarks.methods.figures import draw_all
from workers.benchmarks.methods.landscape_figures import draw_landscape
from workers.benchmarks.methods.one_clock import CLOCK, Clock, by_one_clock, untimed
from workers.benchmarks.methods.parts import KIND, PROBE, Part, clocks, live_parts, replayed_parts
from workers.benchmarks.methods.probes import PROBES
from workers.benchmarks.methods.replayed import Source
from workers.benchmarks.process import PartFailed
from workers.benchmarks.progress import Progress
from workers.benchmarks.text_table import NOTHING, aligned, number
from workers.headless.display import human
from workers.headless.errors import UserMistake
from workers.messages.effects import BELIEVING, COMPARED, walkable
from workers.messages.spec import ALL, COMPUTE
from workers.messages.whole import write_whole

FIGURES = "figures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, help="directory of the cells; a second run goes on where one ended")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--landscape", metavar="DIR", help="replay what `landscape record` left there")
    place.add_argument("--live", action="store_true", help="tune on this machine")
    parser.add_argument("--networks", help="names of landscapes, or ONNX files with --live; separated by commas")
    parser.add_argument(
        "--methods", help="presets, schedulers, or either with +ROLE=PART, separated by commas, and what is asked of a "
        f"landscape itself ({', '.join(PROBES)}); default: schedulers on curves, searches in spaces, and all that is asked; on "
        "curves, where a recorded search is played, methods with other parts than its are left out",
    )  # fmt: skip
    parser.add_argument("--seeds", default="0..4", help="like 0..4 or 0,2,7")
    parser.add_argument("--seconds", type=float, default=None, help="of tuning a live cell")
    parser.add_argument(
        "--trials-per-operator",
        type=int,
        default=None,
        help="of a replay; half of what was recorded, or 400 in a space",
    )
    parser.add_argument(
        "--operators", choices=(ALL, COMPUTE), default=ALL,
        help="all, or convolutions and matrix products only, as the papers tune: of replayed curves the others are left out, "
        "live they keep the first configuration that works",
    )  # fmt: skip
    parser.add_argument(
        "--claims", action="store_true",
        help="print what the papers say beside what the cells do; with neither --landscape nor --live nothing is run",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """0 when every cell is there, 1 when some broke off; raises UserMistake."""
    out = Path(arguments.out).resolve()
    try:
        cells = Cells(out / "cells")
    except OSError as error:
        raise UserMistake(f"--out {arguments.out}: {error.strerror}; name a directory that can be made") from None
    if not arguments.claims and not arguments.landscape and not arguments.live:
        raise UserMistake("name where to compare: --landscape DIR, or --live; --claims prints what is there")
    broken = 0
    if arguments.live:
        parts = live_parts(arguments)
        broken = _fill(parts, cells, out, True)
        if all(cells.find(part.key, part.name) for part in parts):  # what others are still at would be another clock's
            broken += _timed_anew(clocks(arguments, cells), out)
        else:
            sys.stderr.write(
                "not all runs are there: the same command goes on, and times what they found by one clock\n"
            )
    elif arguments.landscape:
        broken = _fill(replayed_parts(arguments, out, lambda source: _draw(source, out)), cells, out, False)
    elif not cells.all(KIND) and not cells.all(PROBE):
        raise UserMistake(
            f"--out {arguments.out} holds no cells yet; name where to compare: --landscape DIR, or --live"
        )
    report, notes = _report(cells, out)
    shown = table(report["claims"]) if arguments.claims else _rows(report["summary"])
    sys.stdout.write(shown + notes)
    return min(1, broken)


def _fill(parts: Sequence[Part], cells: Cells, out: Path, timed: bool) -> int:
    """Runs what is missing and no other process is at: the same command, started twice, shares the work, of what is `timed` by
    a clock one after the other. How many broke off."""
    missing = [part for part in parts if cells.find(part.key, part.name) is None]
    progress = Progress([part.estimate for part in missing])
    return fill(missing, cells, out, progress, _cell, _told, timed)


def _cell(part: Part, work: Path, progress: Progress) -> Cell:
    return {"state": DONE, "reason": "", **part.run(work, progress)}


def _timed_anew(missing: Sequence[Clock], out: Path) -> int:
    """Gives the live cells of each network one clock. How many broke off."""
    progress, broken = Progress([clock.estimate for clock in missing]), 0
    for clock in missing:
        progress.begin(clock.label)
        with in_turn(out / "begun" / "machine", progress), claimed(out / "begun" / clock.claim) as mine:
            try:
                if mine and clock.missing:
                    clock.run(out / "live", progress)
                progress.end("done" if mine else "left to another process")
            except PartFailed as error:
                broken += 1
                progress.end(f"failed: {error}")
    return broken


def _told(cell: Cell) -> str:
    if cell["state"] != DONE:
        return f"{cell['state']}: {cell['reason']}"
    if "probe" in cell:
        return ", ".join(f"{name} {value:.3g}" for name, value in cell["probe"].items())
    reached = f"{1e3 * cell['latency']:.3f} ms" if cell["latency"] else "not every operator measured"
    return f"{reached} after {human(cell['seconds'])}"


def _draw(source: Source, out: Path) -> None:
    """The landscape's own pictures."""
    with claimed(out / "begun" / f"{source.name}.{source.kind}") as mine:
        if mine:
            draw_landscape(source, out / FIGURES)


def _report(cells: Cells, out: Path) -> tuple[dict[str, Any], str]:
    """Pictures and report.json of all cells there are, and what is to be said of them; another process may be at them."""
    found, apart = by_one_clock(cells.all(KIND), cells.all(CLOCK))
    report: dict[str, Any] = {"summary": summary(found), "claims": evaluated(found, cells.all(PROBE))}
    with claimed(out / "begun" / "report") as mine:
        if mine:
            report["figures"] = draw_all(found, out / FIGURES)
            write_whole(out / "report.json", json.dumps(report, indent=1, sort_keys=True))
    rows = report["summary"]
    return report, untimed(apart) + left_out(found) + versions_apart(rows) + older_prices(rows)


def _rows(rows: Sequence[dict[str, Any]]) -> str:
    """Chameleon's Tables 2 and 3 in kind, and how often what was told of slots came so."""
    lines = [
        [
            "network",
            "method",
            "seeds",
            "latency, ms",
            "95 %",
            "to 1 % of it, s",
            "tuning, s",
            "trials",
            "in the 80 % interval",
            "by belief, unlike round-robin, both",
            "walked to, unlike greedy",
        ]
    ]
    for row in rows:
        latency = row["latency_ms"]
        bounds = latency and latency["bounds"]
        lines.append(
            [
                f"{row['network']} ({row['kind']})", row["arm"], _seeds(row),
                number(latency and latency["median"], 3), " to ".join(number(b, 3) for b in bounds) if bounds else NOTHING,
                number(row["near"] and row["near"]["median"]), number(row["seconds"] and row["seconds"]["median"]),
                number(row["trials"] and row["trials"]["median"], 0),
                f"{row['held'] / row['foretold']:.0%} of {row['foretold']} slots" if row["foretold"] else "-",
                *_effects(row["effects"], _scheduler(row["arm"]) if row["counted"] else "", row["both_counted"]),
            ]
        )  # fmt: skip
    return aligned(lines)


def _effects(counts: Mapping[str, int], scheduler: str, both: bool) -> tuple[str, str]:
    """Of all slots those that the belief decided, those that round-robin would have given to others, and those that are `both`,
    where cells tell, of a `scheduler` that counts them; of candidates that a walk could have reached those that one did, and of
    all of explorers those that a sampler chose, or left out, against greedy."""
    slots = counts["slots"]
    scheduled = (
        (counts["decided_by_belief"], BELIEVING),
        (counts["differs_from_round_robin"], COMPARED),
        (counts["belief_differs"], BELIEVING if both else ()),
    )
    searched = (
        (counts["reached"], walkable(counts)),
        (counts["not_greedy"] + counts["left_out"], counts["explorer"]),
    )
    return (
        ", ".join(f"{count / slots:.0%}" if slots and scheduler in who else NOTHING for count, who in scheduled),
        ", ".join(f"{count / among:.0%}" if among else NOTHING for count, among in searched)
        if counts["explorer"]
        else NOTHING,
    )


def _scheduler(arm: str) -> str:
    """Of an arm by its name; none of one that earlier versions knew."""
    with suppress(UserMistake):
        return arm_named(arm).scheduler
    return ""


def _seeds(row: dict[str, Any]) -> str:
    """How many, and of how many the latency is where some runs did not measure every operator."""
    measured = row["latency_ms"]["count"] if row["latency_ms"] else 0
    return str(row["seeds"]) if measured == row["seeds"] else f"{measured} of {row['seeds']}"
