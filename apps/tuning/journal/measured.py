"""Rows of a run's measurements: each configuration once a round."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from apps.core.ids import digest
from apps.tuning.journal.inserting import insert
from apps.tuning.models import Measurement, TuningRun
from apps.tuning.rounds import believed
from workers.messages.events import Event as Told

Identity = tuple[int, str, int]
"""Operator, digest of the configuration, round."""

ASKED_AT_ONCE = 500


class Row(NamedTuple):
    """A measurement's columns."""

    run: Any
    seq: int
    operator: int
    configuration: str
    identity: str
    round: int
    sketch: int
    choices: Any
    asked: Any
    seconds: float | None
    spread: float
    runs: int
    stopped: str
    cause: str
    error: str
    build_seconds: float
    measure_seconds: float
    origin: str
    clock: float
    slot: int


class Measured:
    """Those of one batch: `expect` all of its events, then `fresh` of one after the other, `flush` at its end."""

    def __init__(self, run: TuningRun) -> None:
        self._run = run
        self._told: dict[str, dict[Identity, dict[str, Any]]] = {}
        self._known: set[Identity] = set()
        self._rows: list[Row] = []

    def expect(self, events: Mapping[str, Told]) -> None:
        """Finds out what of these events, by digest, was measured before."""
        for made, event in events.items():
            if event["kind"] == "batch":
                told = self._told[made] = {}
                for measurement in event["measurements"]:
                    told.setdefault(_identity(measurement), measurement)  # the first of equals counts
        asked: defaultdict[int, set[str]] = defaultdict(set)
        for told in self._told.values():
            for operator, configuration, _ in told:
                asked[operator].add(configuration)
        for operator, configurations in asked.items():
            for several in _parts(sorted(configurations)):
                # By operator, as the index is, and in no order: else SQLite looks through the whole run.
                rows = Measurement.objects.filter(run=self._run, operator=operator, configuration__in=several)
                self._known.update(rows.order_by().values_list("operator", "configuration", "round"))

    def fresh(self, event: Told, made: str, operators: Collection[int], number: Callable[[], int]) -> list[Row]:
        """Rows for what was not measured before, numbered; ValueError for an operator that is none of `operators`."""
        rows = []
        for key, measurement in self._told[made].items():
            if key in self._known:
                continue
            if measurement["operator"] not in operators:
                raise ValueError(f"operator {measurement['operator']} was never named")
            self._known.add(key)
            rows.append(self._row(event, key[1], measurement, number()))
        self._rows += rows
        return rows

    def best(self, operator: int) -> float:
        """Seconds of its fastest configuration that is believed, what is not flushed yet included."""
        self.flush()
        seconds = believed(self._run, operator).values_list("seconds", flat=True).first()
        assert seconds is not None
        return seconds

    def flush(self) -> None:
        rows, self._rows = self._rows, []
        insert(Measurement, Row._fields, rows)

    def _row(self, event: Told, configuration: str, measurement: dict[str, Any], seq: int) -> Row:
        """ValueError, TypeError or OverflowError for what does not fit its column: SQLite would take it."""
        seconds = measurement["seconds"]
        return Row(
            run=self._run.pk,
            seq=seq,
            operator=int(measurement["operator"]),
            configuration=configuration,
            identity=str(measurement["identity"] or ""),
            round=int(measurement["round"]),
            sketch=int(measurement["sketch"]),
            choices=measurement["choices"],
            asked=measurement.get("asked"),
            seconds=None if seconds is None else finite(seconds),
            spread=finite(measurement["spread"]),
            runs=int(measurement["runs"]),
            stopped=text(measurement["stopped"], 20),
            cause=text(measurement["cause"], 20),
            error=text(measurement["error"], 4000),
            build_seconds=finite(measurement["build_seconds"]),
            measure_seconds=finite(measurement["measure_seconds"]),
            origin=text(measurement["origin"], 40),
            clock=finite(event["clock"]),
            slot=int(event["slot"]),
        )


def finite(value: Any) -> float:
    """ValueError or TypeError for what is no number, or none that JSON has."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not finite")
    return number


def of_kind(value: Any, kind: type) -> None:
    """TypeError for what a page could not walk through."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")


def text(value: Any, most: int) -> str:
    """At most so many characters of it; TypeError for what is no text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value[:most]


def _identity(measurement: dict[str, Any]) -> Identity:
    asked = measurement.get("asked", measurement["choices"])
    return measurement["operator"], digest(measurement["sketch"], asked), measurement["round"]


def _parts(names: list[str]) -> Iterator[Iterable[str]]:
    for begin in range(0, len(names), ASKED_AT_ONCE):
        yield names[begin : begin + ASKED_AT_ONCE]
