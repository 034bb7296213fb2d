"""What earlier runs left in their directories, for a new one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from workers.headless.errors import UserMistake
from workers.messages.known import Findings, Name, Point, encode_known, records
from workers.messages.whole import write_whole
from workers.supervision.directory import DamagedJournal, events_in


def keep_records(directories: Sequence[str], run: str, path: Path) -> None:
    """Writes a file (messages.known) of what the journals in `directories` (an earlier --out each, its journal in
    `run`) hold; later named ones count as newer. Raises UserMistake for a directory without a journal."""
    found: defaultdict[Name, list[Point]] = defaultdict(list)
    for directory in directories:
        try:
            for name, points in _measured(Path(directory) / run).items():
                found[name] += points
        except (OSError, DamagedJournal, KeyError) as error:
            raise UserMistake(
                f"--records {directory}: it holds no journal of a run that can be read ({error}); "
                "name the --out directory of an earlier tune"
            ) from None
    write_whole(path, encode_known(records({name: points[::-1] for name, points in found.items()})))


def _measured(path: Path) -> dict[Name, list[Point]]:
    """Points of one journal, oldest first. A run of before operators named their space gives none."""
    names: dict[int, Name] = {}
    found: defaultdict[Name, Findings] = defaultdict(Findings)
    for event in events_in(path):
        if event["kind"] == "operators":
            names = {row["index"]: (row["key"], row["space"]) for row in event["operators"] if row.get("space")}
        elif event["kind"] == "batch":
            for measurement in event["measurements"]:
                if (name := names.get(measurement["operator"])) is not None:
                    found[name].add(measurement)
    return {name: findings.points() for name, findings in found.items()}
