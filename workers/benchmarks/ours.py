"""Our own runs: `tune` without the web, as a user starts it, and what its directory tells afterwards."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.benchmarks.identity import operators_key
from workers.benchmarks.process import PartFailed, environment, lines
from workers.benchmarks.progress import Progress
from workers.benchmarks.tally import Tally
from workers.messages.events import Event
from workers.messages.spec import RunSpec
from workers.supervision.directory import events_in, holds_journal

OUT = "tune"


@dataclass(frozen=True)
class Amount:
    """How long a run of ours tunes: minutes, or trials where those are given."""

    minutes: float
    trials: int | None = None

    @property
    def arguments(self) -> list[str]:
        return ["--minutes", str(self.minutes)] if self.trials is None else ["--trials", str(self.trials)]

    @property
    def seconds(self) -> float:
        """A guess where trials are given."""
        return 60.0 * self.minutes if self.trials is None else 0.2 * self.trials

    def __str__(self) -> str:
        return f"{self.minutes:g} minutes" if self.trials is None else f"{self.trials} trials"


class Incomplete(Exception):
    """The budget ended before every operator had a valid configuration."""


@dataclass(frozen=True)
class Told:
    """What a run of `tune` left: exit status, the last line it said, its directory and its journal."""

    code: int
    said: str
    out: Path
    events: list[Event]

    @property
    def broken(self) -> PartFailed:
        """For a run that did not get as far as it was asked to."""
        return PartFailed(f"tune left with status {self.code}: {self.said}")


def run_tune(arguments: Sequence[str], threads: int, work: Path, progress: Progress) -> Told:
    """`tune` in a directory of its own beneath `work`, from nothing; what it says goes to `progress` and to work/log."""
    out, said = work / OUT, [""]
    shutil.rmtree(out, ignore_errors=True)
    argv = [sys.executable, "-m", "workers.headless", "tune", *arguments, "--out", str(out)]

    def hear(line: str) -> None:
        if line:
            said.append(line)
            progress.show(line)

    code = lines(argv, "", environment(threads, work), None, hear, progress.tick)
    (work / "log").write_text("\n".join(said))
    run = out / "run"
    return Told(code, said[-1], out, list(events_in(run)) if holds_journal(run) else [])


def tuned(
    spec: RunSpec, amount: Amount, work: Path, progress: Progress, records: Sequence[str] = ()
) -> tuple[dict[str, Any], list[Event]]:
    """Tunes `spec.network` with `spec.method` and `spec.seed`, beginning with `records` (--out directories of earlier runs);
    the library is unpacked to work/library.

    {seconds, curve, trials, operators, sum_of_operators, ...} and the run's events. Raises Incomplete, or PartFailed with the
    last line said.
    """
    arguments = [
        spec.network, "--method", spec.method, *amount.arguments, "--seed", str(spec.seed), "--layout", spec.layout,
        *(word for directory in records for word in ("--records", directory)),
    ]  # fmt: skip
    told = run_tune(arguments, spec.threads, work, progress)
    finished = next((event for event in reversed(told.events) if event["kind"] == "finished"), None)
    if finished is not None and finished["latency"] is None:
        raise Incomplete(
            told.said if told.code else "nothing that was tried of an operator works: its latency is unknown"
        )
    archive = told.out / f"{Path(spec.network).stem}.zip"
    if told.code != 0 or finished is None or not archive.is_file():
        raise told.broken
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(work / "library")
    summary = json.loads((told.out / "summary.json").read_text())
    return {**_figures(told.events, finished), "summary": summary}, told.events


def _figures(events: list[Event], finished: Event) -> dict[str, Any]:
    batches = [event for event in events if event["kind"] == "batch"]
    started = next(event for event in events if event["kind"] == "started")
    operators = next(event["operators"] for event in reversed(events) if event["kind"] == "operators")
    tally = Tally(operators)
    for event in events:
        tally.hear(event)
    return {
        "seconds": finished["clock"],
        "curve": tally.figures()["curve"],
        "trials": finished["trials"],
        "failures": batches[-1]["failures"] if batches else 0,
        "operators": len(operators),
        "key": operators_key(operator["key"] for operator in operators),
        "sum_of_operators": finished["latency"],
        "layout": started["layout"],
    }
