"""Cells on this machine: the run a user would start, its journal folded as a replay's events are."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.benchmarks.machine import Machine, Network
from workers.benchmarks.methods.tally import Tally
from workers.benchmarks.process import PartFailed, environment, lines
from workers.engine.methods import METHODS, Method
from workers.messages.events import decode


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
    out, said = work / "tune", [""]
    shutil.rmtree(out, ignore_errors=True)
    base, *changes = arm.name.split("+")
    argv = [
        sys.executable, "-m", "workers.headless", "tune", str(network.path), "--out", str(out),
        "--minutes", str(seconds / 60), "--seed", str(seed), *_method(base), *(w for c in changes for w in ("--part", c)),
    ]  # fmt: skip

    def hear(line: str) -> None:
        if line:
            said.append(line)
            show(line)

    code = lines(argv, "", environment(machine.cores, work), None, hear, tick)
    journal = out / "run" / "journal.jsonl"
    if not journal.is_file():
        raise PartFailed(f"tune left with status {code}: {said[-1]}")
    events = [decode(line) for line in journal.read_text().split("\n") if line]
    operators = next((event["operators"] for event in events if event["kind"] == "operators"), None)
    if operators is None or (code != 0 and events[-1]["kind"] != "finished"):
        raise PartFailed(f"tune left with status {code}: {said[-1]}")
    tally = Tally(operators)
    for event in events:
        tally.hear(event)
    return tally.figures()


def _method(base: str) -> list[str]:
    return ["--method", base] if base in METHODS else ["--method", "auto", "--part", f"scheduler={base}"]
