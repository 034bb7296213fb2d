"""Cells on this machine: the run a user would start, its journal folded as a replay's events are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.benchmarks.machine import Machine, Network
from workers.benchmarks.methods.tally import Tally
from workers.benchmarks.ours import run_tune
from workers.benchmarks.process import PartFailed
from workers.engine.methods import METHODS, Method


def run_cell(
    network: Network,
    machine: Machine,
    arm: Method,
    seed: int,
    seconds: float,
    work: Path,
    show: Callable[[str], None],
    tick: Callable[[], None],
) -> dict[str, Any]:
    """Tunes for `seconds`; raises PartFailed with the last line said. The library is made, verified and measured too."""
    if "." in arm.name:
        raise PartFailed(f"{arm.name}: parameters are changed in replays only; leave them out")
    base, *changes = arm.name.split("+")
    arguments = [
        str(network.path), "--minutes", str(seconds / 60), "--seed", str(seed), *_method(base),
        *(word for change in changes for word in ("--part", change)),
    ]  # fmt: skip
    told = run_tune(arguments, machine.cores, work, show, tick)
    operators = next((event["operators"] for event in told.events if event["kind"] == "operators"), None)
    if operators is None or (told.code != 0 and told.events[-1]["kind"] != "finished"):
        raise told.broken
    tally = Tally(operators)
    for event in told.events:
        tally.hear(event)
    return tally.figures()


def _method(base: str) -> list[str]:
    return ["--method", base] if base in METHODS else ["--method", "auto", "--part", f"scheduler={base}"]
