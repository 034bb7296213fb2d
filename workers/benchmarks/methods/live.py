"""Cells on this machine: the run a user would start, its journal folded as a replay's events are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workers.benchmarks.machine import Machine, Network
from workers.benchmarks.methods.arms import spelled
from workers.benchmarks.ours import run_tune
from workers.benchmarks.progress import Progress
from workers.benchmarks.tally import Tally
from workers.engine.methods import Method


def run_cell(
    network: Network,
    machine: Machine,
    arm: Method,
    seed: int,
    seconds: float,
    asked: str,
    work: Path,
    progress: Progress,
) -> dict[str, Any]:
    """Tunes the operators `asked` for (see `RunSpec`) for `seconds`; raises PartFailed with the last line said. An operator
    tells its `bests` too, see `Tally`: what they are worth beside other runs' tells `one_clock`."""
    base, changes = spelled(arm.name)
    arguments = [
        str(network.path), "--minutes", str(seconds / 60), "--seed", str(seed), "--method", base,
        "--operators", asked, "--no-archive",
        *(word for place, value in changes.items() for word in ("--part", f"{place}={value}")),
    ]  # fmt: skip
    told = run_tune(arguments, machine.cores, work, progress)
    operators = next((event["operators"] for event in told.events if event["kind"] == "operators"), None)
    if operators is None or (told.code != 0 and told.events[-1]["kind"] != "finished"):
        raise told.broken
    tally = Tally(operators)
    for event in told.events:
        tally.hear(event)
    figures = tally.figures()
    for row, operator, bests in zip(figures["operators"], operators, tally.bests(), strict=True):
        row.update(key=operator["key"], bests=bests)
    return figures
