"""One run as the figures of a cell, folded from its events: the same for a replay and a live run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workers.benchmarks.curve import Curve, settle
from workers.messages.events import Event

INFINITE = float("inf")
Truth = Callable[[dict[str, Any]], float]
Program = tuple[int, ...]
"""A sketch and the choices that were asked of it."""


class Tally:
    """Hears a run's events in order. `truth` gives the time of a measured program without the luck of its measurement;
    `steps` how many an operator's explorers have walked.

    The figure of a configuration is its latest: when another round makes a lucky best slower, or another one the best,
    the operator's time follows, and its curve was never below that (`settle`).
    """

    def __init__(
        self,
        operators: list[dict[str, Any]],
        truth: Truth | None = None,
        steps: Callable[[int], int] = lambda operator: 0,
    ) -> None:
        count = len(operators)
        self._operators, self._steps = operators, steps
        self._truth = truth or (lambda measurement: measurement["seconds"])
        self._figures: list[dict[Program, tuple[float, float]]] = [{} for _ in operators]
        """Of each configuration of each operator: what was measured last, and its true time."""
        self._true = [INFINITE] * count
        self._trials, self._seconds, self._slots = [0] * count, [0.0] * count, [0] * count
        self._series: list[list[list[float]]] = [[] for _ in range(count)]
        self._latencies: list[tuple[float, float | None]] = []
        self._clock = 0.0
        self._believed = 0
        self.choices: list[int] = []
        self._finished: Event = {}

    def hear(self, event: Event) -> None:
        if event["kind"] == "batch":
            self._batch(event)
        elif event["kind"] == "slot":
            self.choices.append(event["operator"])
            self._slots[event["operator"]] += 1
            self._believed += bool(event["decision"].get("decided_by_belief"))
        elif event["kind"] == "finished":
            self._finished = event

    def figures(self) -> dict[str, Any]:
        """`curve`: (seconds of tuning, latency in s) where it fell. An operator's `series`: (trials, seconds spent in
        it, steps walked, its best in s) where it fell."""
        report = self._finished.get("report", {})
        rows = [
            {
                "name": operator["name"],
                "weight": operator["weight"],
                "trials": self._trials[i],
                "seconds": round(self._seconds[i], 4),
                "slots": self._slots[i],
                "best": _finite(self._true[i]),
                "series": self._series[i],
            }
            for i, operator in enumerate(self._operators)
        ]
        return {
            "reason": self._finished.get("reason", "cut off"),
            "seconds": self._clock,
            "trials": sum(self._trials),
            "latency": _finite(self._latency()),
            "curve": [list(point) for point in Curve.of(self._latencies).points],
            "operators": rows,
            "spent": report.get("spent", {}),
            "search": report.get("search", {}),
            "slots": len(self.choices),
            "decided_by_belief": self._believed,
        }

    def _batch(self, event: Event) -> None:
        measured = event["measurements"]
        touched = {m["operator"] for m in measured}
        for operator in touched:  # a batch of several operators is the warm-up: shared out evenly
            self._seconds[operator] += (event["clock"] - self._clock) / len(touched)
        self._clock = event["clock"]
        for measurement in measured:
            self._measurement(measurement)
        self._latencies.append((round(self._clock, 4), _finite(self._latency())))

    def _measurement(self, measurement: dict[str, Any]) -> None:
        operator, figures = measurement["operator"], self._figures[measurement["operator"]]
        self._trials[operator] += measurement["cause"] != "duplicate"
        if measurement["seconds"] is None:
            return
        program = measurement["sketch"], *measurement.get("asked", measurement["choices"])
        figures[program] = measurement["seconds"], self._truth(measurement)
        true = min(figures.values())[1]
        if true == self._true[operator]:
            return
        self._true[operator] = true
        place = (self._trials[operator], round(self._seconds[operator], 4), self._steps(operator))
        settle(self._series[operator], (*place, true))

    def _latency(self) -> float:
        return float(sum(o["weight"] * true for o, true in zip(self._operators, self._true, strict=True)))


def _finite(value: float) -> float | None:
    return None if value == INFINITE else value
