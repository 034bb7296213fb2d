"""A made-up run: operators whose latency falls ever more slowly, in slots, some configurations failing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Event = dict[str, Any]
SECONDS_A_SLOT = 1.5
TILE = {"kind": "tile", "extent": 56, "parts": 4, "innermost": 56}
KNOBS = [{"name": "structure", "kind": "category"}, *({"name": f"tile{place}", **TILE} for place in range(8))]


def opening(operators: int, seed: int = 0) -> list[Event]:
    """What a run tells before its first batch."""
    rng = np.random.default_rng(seed)
    listed = [
        {
            "index": index,
            "name": f"fused_conv2d{index}_add_relu" if index % 3 else f"max_pool2d{index}",
            "key": f"{index:016x}",
            "weight": 1 + index % 3,
            "flops": float(rng.integers(1, 60)) * 1e6 if index % 3 else 0.0,
            "bytes": 1e6,
            "work": 1e7,
            "sketches": [9],
            "knobs": [KNOBS],
            "configurations": 1e6,
        }
        for index in range(operators)
    ]
    versions = {"apache-tvm": "0.27.0.post1", "numpy": "2.4.6"}
    return [
        {"kind": "phase", "clock": 0.1, "name": "importing", "text": "importing the network"},
        {
            "kind": "started",
            "clock": 2.0,
            "versions": versions,
            "threads": 2,
            "seed": 0,
            "layout": "NHWC",
            "method": "dynatune",
        },
        {"kind": "operators", "clock": 2.1, "operators": listed},
        {"kind": "phase", "clock": 2.2, "name": "tuning", "text": "giving slots to the operators that promise most"},
        {"kind": "log", "clock": 2.2, "level": "info", "text": f"{operators} operators found"},
    ]


def slots(operators: int, batch: int = 16, seed: int = 0) -> Iterator[list[Event]]:
    """Without end: first every operator once, then a batch and its slot at a time."""
    rng = np.random.default_rng(seed)
    best: list[float | None] = [None] * operators
    weights = [1 + index % 3 for index in range(operators)]
    tried = [0] * operators
    start = rng.uniform(2e-5, 4e-4, operators)
    clock, trials, failures, number, serial = 3.0, 0, 0, 0, 0
    order = list(range(operators))
    while True:
        index = order[number] if number < operators else int(rng.choice(operators, p=start / start.sum()))
        began, before = clock, best[index]
        clock += SECONDS_A_SLOT
        measured = []
        tried[index] += batch
        for _ in range(batch):
            serial += 1
            failed = rng.random() < 0.03
            visits = 1 + number / operators
            seconds = None if failed else float(start[index] * (0.35 + 0.65 / visits) * rng.uniform(1.0, 3.0))
            measured.append(measurement(index, serial, seconds))
            trials += 1
            failures += failed
            if seconds is not None and (best[index] is None or seconds < best[index]):
                best[index] = seconds
        known = [value for value in best if value is not None]
        total = sum(w * b for w, b in zip(weights, best, strict=True) if b) if len(known) == operators else None
        number += 1
        yield [
            {
                "kind": "batch",
                "clock": clock,
                "slot": number,
                "measurements": measured,
                "latency": total,
                "trials": trials,
                "failures": failures,
                "spent": {"build": clock * 0.8, "measure": clock * 0.15, "search": clock * 0.05},
            },
            {
                "kind": "slot",
                "clock": clock,
                "slot": number,
                "operator": index,
                "began": began,
                "ended": clock,
                "trials": batch,
                "before": before,
                "after": best[index],
                "decision": _decision(operators, index, number, tried[index] - batch, before)
                | _ahead(operators, number),
                "latency": total,
            },
        ]


def _decision(operators: int, index: int, number: int, tried: int, best: float | None) -> dict[str, Any]:
    """As DynaTune tells it: a table of all operators, and what is believed of the chosen one."""
    if number <= operators or best is None:
        return {"rule": "gamma", "decided_by_belief": False, "operators": {str(index): [0.01, 0.02]}, "belief": None}
    return {
        "rule": "belief" if number % 3 else "bonus",
        "r_ms": 0.0123,
        "bonus_ms": 0.00456,
        "operators": {str(one): [0.0123 / (1 + one), 0.00456] for one in range(operators)},
        "decided_by_belief": number % 3 > 0,
        "scale": "spread",
        "differs_from_round_robin": True,
        "belief": {
            "x": [tried + ahead for ahead in (8, 16, 32, 64)],
            "mean_ms": [1e3 * best * part for part in (0.99, 0.97, 0.95, 0.93)],
            "low_ms": [1e3 * best * part for part in (0.98, 0.95, 0.92, 0.89)],
            "acceptance": 0.31,
            "autocorrelation": 12.5,
            "segments": 2,
            "points": number,
        },
        "chain": _chain(best),
    }


def _chain(best: float) -> dict[str, Any]:
    """Walkers that start together at the likeliest and spread."""
    spreads = [0.02 * (1 - 0.8**step) for step in range(20)]
    lines = [[1e3 * best * (0.97 + place * spread) for spread in spreads] for place in (1.0, 0.5, 0.0, -0.5, -1.0)]
    return {"every": 3, "burn": 50, "ms": [[float(f"{ms:.4g}") for ms in line] for line in lines]}


def _ahead(operators: int, number: int) -> dict[str, Any]:
    """Of every fourth slot: what a tenth longer should bring, which nobody knows in an operator's first slots."""
    if number % 4:
        return {}
    gain, longer = 0.5 / number, max(60.0, 0.1 * SECONDS_A_SLOT * number)
    return {"expected": {"gain": gain, "unknown": gain if number < 3 * operators else 0.0, "seconds": longer}}


def measurement(index: int, serial: int, seconds: float | None) -> dict[str, Any]:
    return {
        "operator": index,
        "sketch": 0,
        "choices": [serial, *(serial // 7**knob % 7 for knob in range(8))],
        "identity": f"{serial:016x}",
        "round": 0,
        "seconds": seconds,
        "spread": 1e-8,
        "runs": 100,
        "stopped": "complete",
        "cause": "" if seconds else "timeout",
        "error": "" if seconds else "took longer than 2 s",
        "build_seconds": 0.05,
        "measure_seconds": 0.08,
        "origin": "explorer",
    }
