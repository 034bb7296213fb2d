"""Operators with their whole spaces, and what came of every candidate: one JSON object a line.

    {"landscape": 1, "peak_flops": ...}
    {"operator": {name, key, weight, flops, bytes, work, start: [[sketch, choices], ...],
                  sketches: [[[knob's name, kind, options], ...], ...]}}
    {"outcome": [operator, sketch, asked choices, round, origin, made choices | null, identity, cause, {the rest}]}

A run's journal holds the outcomes but, of the spaces, only sizes: a recording is written by whoever has the operators.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration, Knob, Operator, Sketch
from workers.landscapes.landscape import LandscapeError

VERSION = 1
_NUMBERS = ("seconds", "spread", "runs", "stopped", "error", "build_seconds", "measure_seconds")


@dataclass(frozen=True)
class Recording:
    """`outcomes` in the order of measuring, duplicates and failures among them; `peak_flops` in FLOP/s."""

    operators: tuple[Operator, ...]
    outcomes: tuple[Outcome, ...]
    peak_flops: float = 1e12

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        partial = path.with_name(path.name + ".partial")
        with partial.open("w", encoding="utf-8") as file:
            for row in self._rows():
                file.write(json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n")
        partial.replace(path)

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Inverse of `write`; raises LandscapeError with the line at fault."""
        operators: list[Operator] = []
        outcomes: list[Outcome] = []
        header: dict[str, Any] = {}
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    if number == 1:
                        header = _header(row)
                    elif "operator" in row:
                        operators.append(_operator(len(operators), row["operator"]))
                    else:
                        outcomes.append(_outcome(row["outcome"]))
                except (ValueError, KeyError, TypeError) as error:
                    raise LandscapeError(
                        f"{path}, line {number} is no line of a landscape ({error}); record it anew"
                    ) from error
        if not header:
            raise LandscapeError(f"{path} is empty; record it anew")
        return cls(tuple(operators), tuple(outcomes), header["peak_flops"])

    def _rows(self) -> Iterator[dict[str, Any]]:
        yield {"landscape": VERSION, "peak_flops": self.peak_flops}
        for operator in self.operators:
            yield {"operator": _operator_row(operator)}
        for outcome in self.outcomes:
            yield {"outcome": _outcome_row(outcome)}


def _header(row: dict[str, Any]) -> dict[str, Any]:
    if row["landscape"] != VERSION:
        raise ValueError(f"version {row['landscape']}, known is {VERSION}")
    return {"peak_flops": float(row["peak_flops"])}


def _operator_row(operator: Operator) -> dict[str, Any]:
    return {
        "name": operator.name,
        "key": operator.key,
        "weight": operator.weight,
        "flops": operator.flops,
        "bytes": operator.bytes,
        "work": operator.work,
        "sketches": [[[knob.name, knob.kind, knob.options] for knob in sketch.knobs] for sketch in operator.sketches],
        "start": [[start.sketch, start.choices] for start in operator.start],
    }


def _operator(index: int, row: dict[str, Any]) -> Operator:
    sketches = tuple(
        Sketch(tuple(Knob(name, kind, tuple(tuple(option) for option in options)) for name, kind, options in knobs))
        for knobs in row["sketches"]
    )
    start = tuple(Configuration(sketch, tuple(choices)) for sketch, choices in row["start"])
    plain = {name: row[name] for name in ("name", "key", "weight", "flops", "bytes", "work")}
    return Operator(index=index, sketches=sketches, start=start, **plain)


def _outcome_row(outcome: Outcome) -> list[Any]:
    asked, made = outcome.candidate.configuration, outcome.configuration
    numbers = {name: value for name in _NUMBERS if (value := getattr(outcome, name))}
    return [
        outcome.candidate.operator,
        asked.sketch,
        asked.choices,
        outcome.candidate.round,
        outcome.candidate.origin,
        None if made == asked else made.choices,
        outcome.identity,
        outcome.cause,
        numbers,
    ]


def _outcome(row: list[Any]) -> Outcome:
    operator, sketch, choices, at, origin, made, identity, cause, numbers = row
    asked = Configuration(sketch, tuple(choices))
    found = asked if made is None else Configuration(sketch, tuple(made))
    unknown = set(numbers) - set(_NUMBERS)
    if unknown:
        raise ValueError(f"unknown figures {sorted(unknown)}")
    return Outcome(Candidate(operator, asked, origin, at), found, identity, cause=cause, **{"seconds": None, **numbers})
