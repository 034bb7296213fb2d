"""The tuning log of an archive, the same from the web and the command line: a JSON object a line, in the order told.

A measurement has kind "measurement", the clock and the slot of its batch, and what the child told of it (see `events`); it
comes before its batch. An event is as it was told, without its measurements and without a checkpoint; the web's are those that
its pages get, and every line of its has a `seq`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE, MEASUREMENT = "tuning_log.jsonl", "measurement"
ASKED = ("operator", "sketch", "choices", "asked", "round", "cause", "seconds")


def measurement_row(measurement: Mapping[str, Any], clock: float | None, slot: int | None) -> dict[str, Any]:
    """A measurement of a batch that was told at `clock` in `slot`."""
    return {"kind": MEASUREMENT, "clock": clock, "slot": slot, **measurement}


def encode_row(row: Mapping[str, Any]) -> str:
    """One line, without its end."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"))


def measurements_in(log: Path) -> Iterator[dict[str, Any]]:
    """The measurements of a log, of each what `orders.latest` and who builds asks for: of a million all would be gigabytes. Its
    other lines, of which some are long, are hardly looked at."""
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if f'"{MEASUREMENT}"' in line and (row := json.loads(line))["kind"] == MEASUREMENT:
                yield {name: row[name] for name in ASKED if name in row}
