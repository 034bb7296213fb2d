"""Cells of `benchmark methods` as finished runs leave them."""

from __future__ import annotations

from typing import Any


def cell(curve: list[list[float]], seconds: float = 100.0, **fields: Any) -> dict[str, Any]:
    """A finished cell with one operator whose series follows the curve, a trial a second."""
    series = [[int(t), t, int(10 * t), latency] for t, latency in curve]
    operator = {
        "name": "conv",
        "key": "k",
        "weight": 1,
        "best": curve[-1][1],
        "series": series,
        "trials": 100,
        "calls": 2,
    }
    operator["seconds"] = seconds
    operator["scored_to_best"] = fields.pop("scored", 100)
    base = {"state": "done", "curve": curve, "seconds": seconds, "latency": curve[-1][1], "trials": 100}
    key = {"layout": "curve", "arm": "sequential", "seed": 0, **fields.pop("key", {})}
    return {**base, "operators": [operator], "spent": {"measure": 50.0}, "name": "net", "key": key, **fields}


SLOW = cell([[1, 10.0], [50, 6.0], [80, 5.0]])
FAST = cell([[1, 10.0], [20, 6.0], [40, 5.02], [60, 4.9]], key={"arm": "dynatune"})
FAILED: dict[str, Any] = {
    **FAST, "latency": None, "curve": [], "spent": {},
    "operators": [{**FAST["operators"][0], "best": None, "series": []}],
}  # fmt: skip
"""Ended, with an operator that never worked."""
