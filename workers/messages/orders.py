"""Orders for a child, as the web and the headless commands give them alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workers.messages.believed import Believed
from workers.messages.causes import DUPLICATE, UNBUILT
from workers.messages.device import Address
from workers.messages.spec import AUTO

Row = Mapping[str, Any]

FUTILE, REPEATED = 4, 64
"""Configurations of an operator that failed, and none that ran, before the library is made with its plain loops; of one that
has fewer all of them, or so many that made programs which had failed: a search gives up there."""
WAITED = "waited"
"""The term of a slot that says for how many of its seconds others had the machine."""
TAKEN_UP = ("decided_by_belief", "differs_from_round_robin", "expected")
"""What an attempt goes on from of the decisions before it: tables of all operators in thousands of them fill the memory."""

PAST = ("measurements", "slots")
"""Of an order what a run found so far: over a kilobyte of memory a measurement."""


def best_of(measurements: Iterable[Row], operators: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """The fastest configuration of each operator that has one, by its index as text: of those that are `Believed`, so that a
    best that was luck is not built.
    """
    rows: dict[tuple[Any, ...], Row] = {}
    believed = {operator["index"]: Believed[tuple[Any, ...]]() for operator in operators}
    for found in measurements:
        if found["seconds"] is not None:
            configuration = _configuration(found)
            rows[configuration] = found
            believed[found["operator"]].add(configuration, found["seconds"], found["round"])
    best: dict[str, dict[str, Any]] = {}
    for operator in operators:
        if (fastest := believed[operator["index"]].best) is not None:
            kept = {name: rows[fastest][name] for name in ("sketch", "choices", "seconds")}
            best[str(operator["index"])] = {"key": operator["key"], "space": operator.get("space", ""), **kept}
    return best


def unfinished(measurements: Iterable[Row], operators: Iterable[Row]) -> list[Row]:
    """Operators without a configuration that ran, of which too few were tried to say that there is none."""
    tried, repeated, ran = Counter[int](), Counter[int](), set[int]()
    for found in measurements:
        tried[found["operator"]] += found["cause"] not in UNBUILT
        repeated[found["operator"]] += found["cause"] == DUPLICATE
        if found["seconds"] is not None:
            ran.add(found["operator"])
    without = (operator for operator in operators if operator["index"] not in ran)
    return [
        operator
        for operator in without
        if not futile(tried[operator["index"]], operator.get("configurations", math.inf), repeated[operator["index"]])
    ]


def futile(tried: int, configurations: float, repeated: int = 0) -> bool:
    """Whether an operator of so many `configurations` is given up, of which so many were `tried` and none ran, and so many
    more made programs that were among these: all of them may be one."""
    return tried >= FUTILE or tried + repeated >= min(configurations, REPEATED)


def latest(measurements: Iterable[Row]) -> list[Row]:
    """Of each configuration that ran in its latest round, the measurement of that, in the order of the first ones. What did
    not run when it was asked again keeps its figure as a best, but is compared with nobody: it would end that."""
    kept: dict[tuple[Any, ...], Row] = {}
    for found in measurements:
        configuration = _configuration(found)
        known = kept.get(configuration)
        if found["cause"] not in UNBUILT and (known is None or found["round"] >= known["round"]):
            kept[configuration] = found
    return [found for found in kept.values() if found["seconds"] is not None]


def _configuration(found: Row) -> tuple[Any, ...]:
    """What was asked for; TVM may have made something else of it."""
    return found["operator"], found["sketch"], *(found.get("asked") or found["choices"])


SLOT_TOLD = ("operator", "began", "ended", "decision", "trials")
"""What `slot_taken_up` takes, by its names in a slot's event and in the database."""
SlotTakenUp = tuple[int, float, dict[str, Any], int]


def own_seconds(began: float, ended: float, waited: float) -> float:
    """Of a slot, without what it waited for others' work, which is nobody's tuning time."""
    return max(0.0, ended - began - max(0.0, waited))


def slot_taken_up(operator: int, began: float, ended: float, decision: Row, trials: int) -> SlotTakenUp:
    """An earlier attempt's slot, as the next one goes on from it: its operator, seconds, terms, and configurations that were
    measured of that operator. Of a slot in which an attempt was killed others carry its number, and are not its own."""
    terms = {name: decision[name] for name in TAKEN_UP if name in decision}
    return operator, own_seconds(began, ended, decision.get(WAITED, 0.0)), terms, trials


def latency_of(best: Mapping[str, Row], operators: Sequence[Row]) -> float:
    """Weighted sum of the best in seconds, in the operators' order; KeyError when one has none."""
    total = 0.0
    for operator in operators:
        total += operator["weight"] * best[str(operator["index"])]["seconds"]
    return total


def tune_order(
    spec: str,
    work_dir: Path,
    *,
    checkpoint: Any,
    measurements: Sequence[Row],
    slots: Sequence[Any],
    spent: Mapping[str, float],
    clock: float,
    operators: Iterable[Row],
    layout: str,
    known: Path | None,
    device: Address | None,
    machine: str,
) -> dict[str, Any]:
    """An attempt at a run: what its journal holds so far, its layout among it (AUTO before one was told), a file of what
    earlier runs found (messages.known), the device that programs are timed on, where that is not this machine, and the name
    of the `machine` that was measured."""
    return {
        "task": "tune",
        "spec": spec,
        "work_dir": str(work_dir),
        "checkpoint": checkpoint,
        "measurements": measurements,
        "slots": slots,
        "spent": spent,
        "clock": clock,
        "operators": [(operator["key"], operator.get("space", "")) for operator in operators],
        "layout": _settled(layout),
        "known": None if known is None else str(known),
        "device": device and device.to_json(),
        "machine": machine,
    }


def compile_order(
    spec: str,
    work_dir: Path,
    name: str,
    layout: str,
    best: Mapping[str, Row],
    latency: float | None,
    log: Path,
    clock: float,
    device: Address | None,
    machine: str,
) -> dict[str, Any]:
    """The artifact of the `best_of` so far, and their `latency_of` where all have one; `layout` is what the run was made with,
    "none" where it made no difference, `log` its tuning log, `clock` the seconds that it tuned. `device` and `machine` as in
    `tune_order`."""
    return {
        "task": "compile",
        "spec": spec,
        "work_dir": str(work_dir),
        "name": name,
        "layout": _settled(layout),
        "best": best,
        "latency": latency,
        "log": str(log),
        "clock": clock,
        "device": device and device.to_json(),
        "machine": machine,
    }


def _settled(layout: str) -> str:
    """A network without convolutions has none of the layouts that may be asked for."""
    return AUTO if layout == "none" else layout
