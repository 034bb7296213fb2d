"""A second run of ours, that begins with what a first one found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workers.benchmarks.ours import OUT, Amount, tuned
from workers.benchmarks.progress import Progress
from workers.messages.events import Event
from workers.messages.orders import best_of
from workers.messages.spec import RunSpec
from workers.messages.whole import write_whole

FIRST = "first"
EARLY = "early.json"
EARLY_SHARE = 0.1
"""Of the time that a first run took to its final latency: what a second run has found by then lies in EARLY."""


def tuned_again(spec: RunSpec, amount: Amount, work: Path, progress: Progress) -> dict[str, Any]:
    """As `tuned`, of a second run that begins with what a first one found: that one's {seconds, curve} are "first", its
    library lies in work/first/library. What the second one had found after EARLY_SHARE of the first one's time, where that
    was all operators, is in work/early.json as an order to compile has it."""
    before = work / FIRST
    before.mkdir(exist_ok=True)
    first, _ = tuned(spec, amount, before, progress)
    second, events = tuned(spec, amount, work, progress, [str(before / OUT)])
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
