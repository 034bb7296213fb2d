"""`benchmark speed`: TVM's own tuning and ours on the same network, machine and threads, as curves over tuning time."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from workers.benchmarks import again, chart, ours
from workers.benchmarks.cells import DONE, VOID, Cell, Cells, Key, is_open
from workers.benchmarks.curve import Curve
from workers.benchmarks.filling import (
    add_cell_arguments,
    claimed,
    fill,
    filled,
    missing,
    named_networks,
    tuned_once,
    verdict,
)
from workers.benchmarks.identity import IMPORT, RECORDS, STOCK, TUNED, product_version
from workers.benchmarks.machine import Machine, Network, all_opened
from workers.benchmarks.process import PartFailed, environment, result_of
from workers.benchmarks.progress import Progress
from workers.benchmarks.speed_blocks import AGAIN, THEIRS, blocks
from workers.benchmarks.speed_table import table
from workers.benchmarks.turns import FINALS, OURS, in_turns, pair
from workers.child.verification import verified
from workers.engine.methods import METHODS
from workers.headless.arguments import out_directory
from workers.headless.display import human
from workers.headless.errors import UserMistake
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.spec import RunSpec
from workers.sandbox.lock import MeasureLock
from workers.tvm_backend import runtime

KIND = "speed"
OVERHEAD = 120.0  # s of a cell of ours beside its tuning
GUESS = {"stock": 1500.0, "warm": 600.0}


@dataclass(frozen=True)
class Part:
    """One cell to be filled: `seed` and arm are in the spec and the key."""

    network: Network
    key: Key
    spec: RunSpec
    amount: int | ours.Amount
    """Trials an operator of an arm of TVM's, the budget of one of ours."""

    @property
    def name(self) -> str:
        return self.network.name

    @property
    def label(self) -> str:
        return f"{self.name} {self.key.arm} seed {self.key.seed} ({self.key.layout})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cell_arguments(parser)
    parser.add_argument(
        "--arms",
        default="stock,warm,autotvm,auto",
        help="stock, warm (TVM's tune_relax), methods of ours, and again: auto with the records of a run just before it",
    )
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--minutes", type=float, default=10.0, help="of tuning for each of our arms")
    parser.add_argument("--trials", type=int, default=None, help="for each of our arms, instead of --minutes")
    parser.add_argument("--trials-per-operator", type=int, default=20, help="for stock and warm")
    parser.add_argument(
        "--layout", choices=("same", "free"), default="same",
        help="same: TVM's arms tune the module that ours tune; free: they get the plain import, as a user would",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """0 when every cell is there, 1 when some broke off."""
    out = out_directory(arguments.out)
    cells = Cells(out / "cells")
    broken = 0 if arguments.table else _fill(planned(arguments), cells, out, arguments.again_void)
    _report(cells, out)
    return min(1, broken)


def checked(arguments: argparse.Namespace) -> tuple[list[Network], list[int], list[str]]:
    """Networks, seeds and arms; raises UserMistake."""
    files = named_networks(arguments)
    arms = [arm for arm in arguments.arms.split(",") if arm]
    for arm in arms:
        if arm not in (*THEIRS, AGAIN, *METHODS):
            raise UserMistake(f"--arms {arm}: unknown; there are {', '.join((*THEIRS, AGAIN, *METHODS))}")
    try:
        seeds = [int(seed) for seed in arguments.seeds.split(",")]
    except ValueError:
        raise UserMistake(f"--seeds {arguments.seeds!r} must be whole numbers separated by commas") from None
    if (
        not arms
        or min(seeds) < 0
        or not 0 < 60 * arguments.minutes < math.inf
        or arguments.trials_per_operator < 1
        or (arguments.trials is not None and arguments.trials < 1)
    ):
        raise UserMistake(
            "--arms must name one at least, --seeds be 0 or more, --minutes, --trials and --trials-per-operator finite and "
            "greater than 0"
        )
    return all_opened(files), seeds, arms


def planned(arguments: argparse.Namespace) -> list[Part]:
    """Network by network and seed by seed, so that the arms of a seed are near to each other in time."""
    networks, seeds, arms = checked(arguments)
    machine = Machine.here()
    return [_part(network, arm, seed, arguments, machine) for network in networks for seed in seeds for arm in arms]


def _part(network: Network, arm: str, seed: int, arguments: argparse.Namespace, machine: Machine) -> Part:
    theirs = arm in THEIRS
    amount = arguments.trials_per_operator if theirs else ours.Amount(arguments.minutes, arguments.trials)
    ours_made_by = (*TUNED, *RECORDS) if arm == AGAIN else TUNED
    # Whatever layout they were found in: what their sum is judged by is compiled as ours is.
    rooms = (*STOCK, *IMPORT) if theirs else ours_made_by
    key = Key(
        kind=KIND,
        network=network.sha256,
        arm=arm,
        seed=seed,
        # Ours choose the layout themselves: one cell serves both comparisons.
        layout=arguments.layout if theirs else "own",
        budget=f"{amount} trials an operator" if theirs else str(amount),
        cpu=machine.cpu,
        cores=machine.cores,
        version=product_version(rooms),
    )
    return Part(network, key, machine.spec(network, arm if arm in METHODS else "auto", seed), amount)


def _fill(parts: list[Part], cells: Cells, out: Path, again_void: bool) -> int:
    """Runs what is missing; how many cells broke off."""
    parts = missing(parts, lambda part: is_open(cells.find(part.key, part.name), again_void))
    progress = Progress([_estimate(part, cells.all(KIND)) for part in parts])

    def told(cell: Cell) -> str:
        _draw(cells, out)
        return _told(cell)

    return fill(parts, cells, out, progress, _cell, told)


def _estimate(part: Part, known: list[Cell]) -> float:
    """Seconds: of ours the budget and what follows, of TVM's what the arm took before, on this network if it can be."""
    if isinstance(part.amount, ours.Amount):
        return part.amount.seconds * (2 if part.key.arm == AGAIN else 1) + OVERHEAD
    same_arm = [cell for cell in known if cell["key"]["arm"] == part.key.arm and cell["state"] == DONE]
    same = [cell for cell in same_arm if cell["name"] == part.name] or same_arm
    return sum(cell["wall"] for cell in same) / len(same) if same else GUESS[part.key.arm]


def _cell(part: Part, work: Path, progress: Progress) -> Cell:
    tuning = tuned_once(work, lambda: _tuned(part, work, progress))
    if tuning.get("missing"):
        return {"state": VOID, "reason": _without_records(tuning), "tuning": tuning}
    return _finals(part, work, tuning, progress)


def _without_records(tuning: dict[str, Any]) -> str:
    why = next(iter(tuning.get("errors", {})), "TVM proposed no configuration")
    return f"no valid record of {', '.join(tuning['missing'])} ({tuning['failures']} failures; {why})"


def _tuned(part: Part, work: Path, progress: Progress) -> dict[str, Any]:
    shutil.rmtree(work)  # TVM's database appends to what it finds
    work.mkdir()
    if isinstance(part.amount, ours.Amount):
        if part.key.arm == AGAIN:
            return again.tuned_again(part.spec, part.amount, work, progress)
        return ours.tuned(part.spec, part.amount, work, progress)[0]
    return _theirs(part, work, progress)


def _theirs(part: Part, work: Path, progress: Progress) -> dict[str, Any]:
    planned_trials = [0]

    def hear(event: dict[str, Any]) -> None:
        if event["kind"] == "operators":
            planned_trials[0] = event["trials"]
            progress.show(f"{event['operators']} operators, {event['trials']} trials planned")
            return
        latency = f", {1e3 * event['latency']:.3f} ms" if event["latency"] else ""
        left = event["clock"] / max(1, event["trials"]) * max(0, planned_trials[0] - event["trials"]) + OVERHEAD / 2
        done = f"{event['measured']} of {event['operators']} operators"
        progress.show(f"{done}, {event['trials']} of {planned_trials[0]} trials{latency}", left)

    order = {
        "arm": part.key.arm,
        "layout": part.key.layout,
        "spec": part.spec.to_json(),
        "trials": part.amount,
        "name": part.name,
        "work_dir": str(work),
        "folder": str(work / "library"),
    }
    env = environment(part.spec.threads, work)
    return result_of("workers.benchmarks.stock", order, env, work / "log", hear, progress.tick)


def _finals(part: Part, work: Path, tuning: dict[str, Any], progress: Progress) -> Cell:
    """End to end in turns with ONNX Runtime, alone on the machine."""
    library = work / "library"
    progress.show("verifying", FINALS)
    with MeasureLock().exclusive():
        tuning = {**_judged(part, work, progress), **tuning}
        wrong = verified(part.spec, library, work).reason
        turns = in_turns(pair(part.spec, library, work), lambda text: progress.show(text, FINALS))
    ended, theirs = turns.latency(OURS), turns.latency(ONNX_RUNTIME)
    if ended is None or theirs is None:
        raise PartFailed("; ".join(f"{name}: {error}" for name, error in turns.errors.items()))
    curve = Curve.of(tuning["curve"])
    return {
        **verdict(wrong),
        "tuning": {**tuning, "curve": curve.points},
        "end_to_end": asdict(ended),
        "onnxruntime": asdict(theirs),
        "quickest": {"end_to_end": turns.quickest(OURS), "onnxruntime": turns.quickest(ONNX_RUNTIME)},
        "ratio": median(ratios := turns.ratios(OURS, ONNX_RUNTIME)),
        "ratios": ratios,
    }


def _judged(part: Part, work: Path, progress: Progress) -> dict[str, Any]:
    """What our stopwatch says, in the minute in which the library is timed, of the programs that the search ended with:
    {judged: s, key}. Of a second run also of those it had early and, in turns, of the first one's: {first_judged, early}."""
    theirs = part.key.arm in THEIRS
    sets: dict[str, Any] = {"judged": {"records": str(work if theirs else work / "library"), "whole": theirs}}
    if part.key.arm == AGAIN:
        sets["first_judged"] = {"records": str(work / again.FIRST / "library"), "whole": False}
        if (early := work / again.EARLY).is_file():
            sets["early"] = {"best": json.loads(early.read_text())}
    order = {
        "layout": part.key.layout if theirs else "same",
        "spec": part.spec.to_json(),
        "sets": list(sets.values()),
    }
    env = environment(part.spec.threads, work) | runtime.environment(part.spec.threads)
    found = result_of("workers.benchmarks.judge", order, env, work / "judge.log", lambda event: None, progress.tick)
    return {**dict(zip(sets, found["latencies"], strict=True)), "key": found["key"]}


def _told(cell: Cell) -> str:
    if cell["state"] != DONE:
        return f"{cell['state']}: {cell['reason']}"
    final = Curve.of(cell["tuning"]["curve"]).final or float("nan")
    return (
        f"{human(cell['tuning']['seconds'])} of tuning, sum {1e3 * final:.3f} ms, "
        f"end to end {1e3 * cell['end_to_end']['median']:.3f} ms, {cell['ratio']:.2f} x ONNX Runtime"
    )


def _draw(cells: Cells, out: Path) -> None:
    with claimed(out / "begun" / "figures") as mine:
        if mine:  # else another process draws
            _drawn(cells, out)


def _drawn(cells: Cells, out: Path) -> None:
    for block in blocks(cells.all(KIND)):
        words = ("seconds of tuning", "sum over the operators, ms")
        chart.lines(block.lines, block.title, words, out / f"speed-{block.name}-{block.layout}.svg")


def _report(cells: Cells, out: Path) -> None:
    found = filled(cells, KIND, out)
    _draw(cells, out)
    sys.stdout.write(table(found))
