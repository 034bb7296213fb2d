"""What a run tells: one JSON object a line, written by the child, journalled by the supervisor, drawn by the page.

Every event has `kind` and `clock` (seconds of tuning time). The kinds and their payloads:

started      versions, threads, seed, layout, method, target, notes: with what the run was made, and what was done to the
             network (texts)
phase        name ("importing", "spaces", "resuming", "warm-up", "tuning", "confirming" of a run; "compiling", "rehearsing",
             "verifying", "packing", "baseline", "inspecting", "detecting", "checking", "converting", "recording" of other
             tasks), text
operators    operators: [{index, name, key, weight, flops, bytes, work, at_once: products of whole numbers that an instruction
             adds up (1: of float32), sketches: [knob count], configurations, knobs: those of each sketch (messages.knobs),
             space: what its choices and times mean, known: points of earlier runs, alike: where there are none, how many
             others with its knobs lend it theirs}]
batch        slot (0 in the warm-up and the last turn), measurements: [{operator, sketch, choices, identity, round,
             seconds | null, spread, runs, stopped, cause, error, build_seconds, measure_seconds, origin, asked: the choices
             that were proposed, where others were made of them}], latency (s, weighted sum of the best; null until complete),
             trials, failures, spent: {category: seconds since the start}, which the last batch, without measurements, lacks
slot         slot, operator, began, ended, trials: new configurations of this operator that it measured, before, after (s),
             latency, decision {rule, the terms that decided, and now and then expected {gain, unknown: shares of the latency,
             seconds}: what so many more are expected to bring; of a belief that was sampled chain {every, burn, ms}, see
             `scheduler.shown`},
             checkpoint (also on the last batch): opaque JSON of the pipeline, not in every slot
end_to_end   seconds, spread, runs, latency (the sum at that time), verified (bool), error
baseline     name, seconds, spread, runs, threads
result       task, and what it found: inspection, onnx (a path), hardware, peak and versions, an artifact's passed, verdict,
             latency, onnxruntime, ratio, rehearsal and archive (a path), or landscape and path (see workers/child)
log          level ("info", "warning", "error": why this attempt breaks off, which the next one may not), text, beat (true: a
             sign of life that nobody needs to keep)
finished     reason ("seconds", "trials", "target", "gain", "exhausted", "stopped", "paused"; "done" for other tasks); of a
             run also latency, trials, failures, report: {parts, spent, phases, searched, slots, operators, decided_by_belief,
             differs_from_round_robin, belief_differs (both), contextual, timings: {runs, stopped: {reason: timings}}, search}
failed       error, reason, next_step: a fault of the run itself, in the user's words
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

Event = dict[str, Any]

KINDS = frozenset(
    {"started", "phase", "operators", "batch", "slot", "end_to_end", "baseline", "result", "log", "finished", "failed"}
)


NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""A null character, and no backslash that stands before u0000."""


def encode(event: Event) -> str:
    """One line of strict JSON. Raises ValueError for an unknown kind or a number JSON does not know."""
    if event.get("kind") not in KINDS:
        raise ValueError(f"unknown event kind {event.get('kind')!r}")
    return json.dumps(event, sort_keys=True, separators=(",", ":"), allow_nan=False)


def decode(line: str) -> Event:
    """Inverse of `encode`; raises ValueError for anything that is not an event."""
    event = json.loads(line)
    if not isinstance(event, dict) or event.get("kind") not in KINDS:
        raise ValueError(f"not an event: {line[:200]!r}")
    if "\\u0000" in line and NULL.search(line):
        raise ValueError("an event holds a null character, which PostgreSQL's JSON cannot keep")
    clock = event.get("clock", 0.0)
    if not isinstance(clock, int | float) or not math.isfinite(clock):
        raise ValueError(f"event clock {clock!r} is not a finite number")
    return event
