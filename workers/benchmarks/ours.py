"""Our own runs: `tune` without the web, as a user starts it, and what its directory tells afterwards."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.benchmarks.identity import operators_key
from workers.benchmarks.process import PartFailed, environment, lines
from workers.benchmarks.tally import Tally
from workers.headless.whole import write_whole
from workers.messages.events import Event, decode
from workers.messages.orders import best_of
from workers.messages.spec import RunSpec

FIRST = "first"
OUT = "tune"
EARLY = "early.json"
EARLY_SHARE = 0.1
"""Of the time that a first run took to its final latency: what a second run has found by then lies in EARLY."""


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


def run_tune(
    arguments: Sequence[str], threads: int, work: Path, show: Callable[[str], None], tick: Callable[[], None]
) -> Told:
    """`tune` in a directory of its own beneath `work`, from nothing; what it says goes to `show` and to work/log."""
    out, said = work / OUT, [""]
    shutil.rmtree(out, ignore_errors=True)
    argv = [sys.executable, "-m", "workers.headless", "tune", *arguments, "--out", str(out)]

    def hear(line: str) -> None:
        if line:
            said.append(line)
            show(line)

    code = lines(argv, "", environment(threads, work), None, hear, tick)
    (work / "log").write_text("\n".join(said))
    return Told(code, said[-1], out, _events(out))


def tuned(
    spec: RunSpec,
    amount: Amount,
    work: Path,
    show: Callable[[str], None],
    tick: Callable[[], None],
    records: Sequence[str] = (),
) -> dict[str, Any]:
    """Tunes `spec.network` with `spec.method` and `spec.seed`, beginning with `records` (--out directories of earlier runs);
    the library is unpacked to work/library.

    {seconds, curve, trials, operators, sum_of_operators, ...}. Raises Incomplete, or PartFailed with the last line said.
    """
    return _ran(spec, amount, work, show, tick, records)[0]


def _ran(
    spec: RunSpec,
    amount: Amount,
    work: Path,
    show: Callable[[str], None],
    tick: Callable[[], None],
    records: Sequence[str],
) -> tuple[dict[str, Any], list[Event]]:
    """The same with the run's events."""
    arguments = [
        spec.network, "--method", spec.method, *amount.arguments, "--seed", str(spec.seed), "--layout", spec.layout,
        *(word for directory in records for word in ("--records", directory)),
    ]  # fmt: skip
    told = run_tune(arguments, spec.threads, work, show, tick)
    finished = next((event for event in reversed(told.events) if event["kind"] == "finished"), None)
    if finished is not None and finished["latency"] is None:
        raise Incomplete(told.said)
    archive = told.out / f"{Path(spec.network).stem}.zip"
    if told.code != 0 or finished is None or not archive.is_file():
        raise told.broken
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(work / "library")
    summary = json.loads((told.out / "summary.json").read_text())
    return {**_figures(told.events, finished), "summary": summary}, told.events


def tuned_again(
    spec: RunSpec, amount: Amount, work: Path, show: Callable[[str], None], tick: Callable[[], None]
) -> dict[str, Any]:
    """As `tuned`, of a second run that begins with what a first one found: that one's {seconds, curve} are "first", its
    library lies in work/first/library. What the second one had found after EARLY_SHARE of the first one's time, where that
    was all operators, is in work/early.json as an order to compile has it."""
    before = work / FIRST
    before.mkdir(exist_ok=True)
    first = tuned(spec, amount, before, show, tick)
    second, events = _ran(spec, amount, work, show, tick, [str(before / OUT)])
    best = _best_at(EARLY_SHARE * first["curve"][-1][0], events)
    (work / EARLY).unlink(missing_ok=True)
    if best is not None:
        write_whole(work / EARLY, json.dumps(best))
    return {**second, FIRST: {name: first[name] for name in ("seconds", "curve")}}


def _best_at(seconds: float, events: list[Event]) -> dict[str, Any] | None:
    """The fastest of each operator that was measured by then; None where one had none."""
    operators = next(event["operators"] for event in reversed(events) if event["kind"] == "operators")
    batches = [event for event in events if event["kind"] == "batch" and event["clock"] <= seconds]
    best = best_of((row for batch in batches for row in batch["measurements"]), operators)
    return best if len(best) == len(operators) else None


def _events(out: Path) -> list[Event]:
    path = out / "run" / "journal.jsonl"
    if not path.is_file():
        return []
    return [decode(line) for line in path.read_text().split("\n") if line]


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
