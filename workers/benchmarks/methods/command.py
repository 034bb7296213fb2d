"""`benchmark methods`: networks x methods x seeds at equal budget, on landscapes or live; pictures and the papers' claims."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.benchmarks.cells import DONE, FAILED, Cells, Key
from workers.benchmarks.identity import TUNING, content_hash, product_version
from workers.benchmarks.machine import Machine, all_opened
from workers.benchmarks.methods import live, replayed
from workers.benchmarks.methods.arms import SCHEDULING, SEARCHING, arm_named, definition
from workers.benchmarks.methods.claims import evaluated, table
from workers.benchmarks.methods.compare import summary, versions_apart
from workers.benchmarks.methods.figures import draw_all
from workers.benchmarks.methods.landscape_figures import draw_landscape
from workers.benchmarks.methods.replayed import CURVE, SPACE
from workers.benchmarks.process import PartFailed
from workers.benchmarks.progress import Progress, human
from workers.benchmarks.text_table import NOTHING, aligned, number
from workers.engine.methods import Method
from workers.headless.errors import UserMistake
from workers.landscapes import LandscapeError
from workers.landscapes.calibration import ORACLE
from workers.messages.spec import ALL, COMPUTE

KIND, LIVE = "methods", "live"
FIGURES = "figures"
REPLAYED = ("workers/engine", "workers/pipeline", "workers/landscapes")
GUESS = 5.0  # s of a replay until one was seen
OVERHEAD = 60.0  # s of a live cell beside its tuning


@dataclass(frozen=True)
class Part:
    """One cell to be filled by `run`, which is given the progress line."""

    name: str
    key: Key
    estimate: float
    run: Callable[[Progress], dict[str, Any]]

    @property
    def label(self) -> str:
        return f"{self.name} {self.key.layout} {self.key.arm} seed {self.key.seed}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, help="directory of the cells; a second run goes on where one ended")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--landscape", metavar="DIR", help="replay what `landscape record` left there")
    place.add_argument("--live", action="store_true", help="tune on this machine")
    parser.add_argument("--networks", help="names of landscapes, or ONNX files with --live; separated by commas")
    parser.add_argument(
        "--methods", help="presets, schedulers, or either with +ROLE=PART, separated by commas; "
        "default: schedulers on curves, searches in spaces",
    )  # fmt: skip
    parser.add_argument("--seeds", default="0..4", help="like 0..4 or 0,2,7")
    parser.add_argument("--seconds", type=float, default=None, help="of tuning a live cell")
    parser.add_argument(
        "--trials-per-operator", type=int, default=None, help="of a replay; all that was recorded, or 400 in a space"
    )
    parser.add_argument(
        "--operators", choices=(ALL, COMPUTE), default=ALL,
        help="all, or convolutions and dense layers only, as the papers tune: of replayed curves the others are left out, "
        "live they keep the first configuration that works",
    )  # fmt: skip
    parser.add_argument("--claims", action="store_true", help="run nothing, print what the papers say and what we have")


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
    if arguments.landscape or arguments.live:
        parts = _live_parts(arguments, out) if arguments.live else _replayed_parts(arguments, out)
        broken = _fill(parts, cells)
    report = _report(cells, out)
    shown = table(report["claims"]) if arguments.claims else _rows(report["summary"])
    sys.stdout.write(shown + versions_apart(report["summary"]))
    return min(1, broken)


def seeds_of(text: str) -> list[int]:
    """ "0..4" or "0,2,7"; raises UserMistake."""
    try:
        if ".." in text:
            first, last = (int(word) for word in text.split(".."))
            found = list(range(first, last + 1))
        else:
            found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 0:
        raise UserMistake(f"--seeds {text!r} must be whole numbers from 0 on, like 0..4 or 0,2,7")
    return found


def _replayed_parts(arguments: argparse.Namespace, out: Path) -> list[Part]:
    """The cells of every landscape, whose own pictures are drawn at once."""
    if arguments.seconds is not None:
        raise UserMistake("--seconds is for --live; a replay is told its --trials-per-operator")
    if arguments.trials_per_operator is not None and arguments.trials_per_operator < 1:
        raise UserMistake(f"--trials-per-operator {arguments.trials_per_operator} must be at least 1")
    named = {name: arm_named(name) for name in _words(arguments.methods) or ()}
    arms = {kind: named or _known(default) for kind, default in ((CURVE, SCHEDULING), (SPACE, SEARCHING))}
    every = [arm for of_kind in arms.values() for arm in of_kind.values()]
    version, parts = product_version(REPLAYED), []
    words = _words(arguments.networks)
    for source in replayed.sources(arguments.landscape, words, every, out, arguments.operators):
        draw_landscape(source, out / FIGURES)
        trials = source.trials(arguments.trials_per_operator)
        content = content_hash(source.path) + content_hash(source.path.with_name("costs.json"))
        for name, arm in arms[source.kind].items():
            if not _able(arm, source.kind):
                continue
            for seed in seeds_of(arguments.seeds):
                key = Key(
                    kind=KIND,
                    network=hashlib.sha256(content.encode()).hexdigest(),
                    arm=name,
                    seed=seed,
                    layout=source.kind,
                    budget=f"{trials} trials of {_digest(arm)} at {source.costs.digest(arm)}",
                    cpu=str(source.hardware.get("name", "")),
                    cores=int(source.recording.header.get("threads", 0)),
                    version=version,
                )
                parts.append(Part(source.name, key, GUESS, _replay(source, arm, seed, trials)))
    return parts


def _replay(source: replayed.Source, arm: Method, seed: int, trials: int) -> Callable[[Progress], dict[str, Any]]:
    return lambda progress: replayed.run_cell(source, arm, seed, trials)


def _live_parts(arguments: argparse.Namespace, out: Path) -> list[Part]:
    if not arguments.networks or not arguments.methods:
        raise UserMistake("--live needs --networks A.onnx,B.onnx and --methods a,b,c")
    if arguments.seconds is None or not arguments.seconds > 0:
        raise UserMistake("--live needs --seconds, the tuning time of a cell, greater than 0")
    arms = {name: arm_named(name) for name in _words(arguments.methods) or ()}
    networks, seeds = all_opened(_words(arguments.networks) or []), seeds_of(arguments.seeds)
    machine, version, seconds = Machine.here(), product_version(TUNING), arguments.seconds
    limit = f"{seconds:g} s" if arguments.operators == ALL else f"{seconds:g} s, {arguments.operators}"
    work = out / "live"
    work.mkdir(parents=True, exist_ok=True)

    def measured(network: Any, arm: Method, seed: int) -> Callable[[Progress], dict[str, Any]]:
        asked = arguments.operators
        return lambda p: live.run_cell(network, machine, arm, seed, seconds, asked, work, p.show, p.tick)

    return [
        Part(
            network.name,
            Key(
                KIND,
                network.sha256,
                name,
                seed,
                LIVE,
                f"{limit} of {_digest(arm)}",
                machine.cpu,
                machine.cores,
                version,
            ),
            seconds + OVERHEAD,
            measured(network, arm, seed),
        )
        for seed in seeds  # seeds outermost: a first answer on everything comes soonest
        for network in networks
        for name, arm in arms.items()
    ]


def _fill(parts: Sequence[Part], cells: Cells) -> int:
    """Runs what is missing; how many broke off."""
    missing = [part for part in parts if cells.find(part.key, part.name) is None]
    progress, broken = Progress([part.estimate for part in missing]), 0
    for part in missing:
        progress.begin(part.label)
        began = time.monotonic()
        try:
            figures = part.run(progress)
        except (PartFailed, LandscapeError) as error:
            broken += 1
            cells.keep(part.key, part.name, {"state": FAILED, "reason": str(error)})
            progress.end(f"failed: {error}")
            continue
        cells.keep(
            part.key, part.name, {"state": DONE, "reason": "", "took": round(time.monotonic() - began, 2), **figures}
        )
        reached = f"{1e3 * figures['latency']:.3f} ms" if figures["latency"] else "not every operator measured"
        progress.end(f"{reached} after {human(figures['seconds'])}")
    return broken


def _report(cells: Cells, out: Path) -> dict[str, Any]:
    """Pictures and report.json of all cells there are."""
    found = cells.all(KIND)
    report = {"summary": summary(found), "claims": evaluated(found), "figures": draw_all(found, out / FIGURES)}
    partial = out / "report.partial"
    partial.write_text(json.dumps(report, indent=1, sort_keys=True))
    partial.replace(out / "report.json")
    return report


def _rows(rows: Sequence[dict[str, Any]]) -> str:
    """Chameleon's Tables 2 and 3 in kind, and how often a belief's interval held."""
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
            ]
        )  # fmt: skip
    return aligned(lines)


def _seeds(row: dict[str, Any]) -> str:
    """How many, and of how many the latency is where some runs did not measure every operator."""
    measured = row["latency_ms"]["count"] if row["latency_ms"] else 0
    return str(row["seeds"]) if measured == row["seeds"] else f"{measured} of {row['seeds']}"


def _known(names: Sequence[str]) -> dict[str, Method]:
    """The default arms whose parts this product has."""
    found = {}
    for name in names:
        try:
            found[name] = arm_named(name)
        except UserMistake as mistake:
            sys.stderr.write(f"left out: {mistake}\n")
    return found


def _able(arm: Method, kind: str) -> bool:
    """The oracle is shown recorded curves; a space has none before it is searched."""
    return arm.scheduler != ORACLE or kind == CURVE


def _words(text: str | None) -> list[str] | None:
    return [word for word in text.split(",") if word] if text else None


def _digest(arm: Method) -> str:
    return hashlib.sha256(definition(arm).encode()).hexdigest()[:8]
