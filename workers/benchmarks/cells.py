"""Finished parts of a benchmark: one JSON file each, whole or not at all, found again by what was measured on what."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workers.messages.whole import write_whole

Cell = dict[str, Any]

READABLE = 200
"""Bytes of a file's name that are for who reads it: file systems take 255, and the digest behind tells cells apart."""

DONE, VOID, FAILED = "done", "void", "failed"
"""void: it ended and does not count, for `reason`. failed: it broke off, and is run again the next time."""


def is_open(cell: Cell | None, again_void: bool) -> bool:
    """Whether a cell, as `Cells.find` gave it, is still to be run."""
    return cell is None or (again_void and cell["state"] == VOID)


@dataclass(frozen=True)
class Key:
    """What makes two measurements the same one. `network` is the SHA-256 of the file, `version` that of what was compared."""

    kind: str
    network: str
    arm: str
    seed: int
    layout: str
    budget: str
    cpu: str
    cores: int
    version: str

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


def by_versions(*sides: Iterable[Cell]) -> str:
    """What a mean has to say where more than one version of the code made the cells of a side: two sides have two anyway."""
    count = max(len({cell["key"]["version"] for cell in cells}) for cells in sides)
    return f", by {count} versions of the code" if count > 1 else ""


def days_of(cells: Iterable[Cell]) -> str:
    """The first and the last on which one of them ended: what is printed may be older than the code."""
    days = sorted({str(cell["ended"])[:10] for cell in cells})
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "none finished"


class Cells:
    """The files of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def find(self, key: Key, name: str) -> Cell | None:
        """The finished cell, None for one that is missing or has to be run again."""
        cell = self._read(self._path(key, name))
        return cell if cell is not None and cell["state"] != FAILED else None

    def keep(self, key: Key, name: str, cell: Cell) -> Cell:
        """Writes the cell with its key and the time; returns what was written."""
        kept = {**cell, "key": asdict(key), "name": name, "ended": datetime.now(UTC).isoformat(timespec="seconds")}
        write_whole(self._path(key, name), json.dumps(kept, indent=1, sort_keys=True))
        return kept

    def all(self, kind: str) -> list[Cell]:
        """Of one kind, by network; of those that differ in the version alone the latest, but one that failed hides none that
        did not."""
        latest: dict[tuple[Any, ...], Cell] = {}
        for cell in sorted(self._every(), key=lambda found: str(found["ended"])):
            key = cell["key"]
            place = tuple(key[name] for name in sorted(key) if name != "version")
            if key["kind"] == kind and (cell["state"] != FAILED or latest.get(place, cell)["state"] == FAILED):
                latest[place] = cell
        return sorted(latest.values(), key=lambda found: (found["name"], found["key"]["arm"], found["key"]["seed"]))

    def _every(self) -> Iterator[Cell]:
        for path in sorted(self._directory.glob("*.json")):
            if (cell := self._read(path)) is not None:
                yield cell

    def _path(self, key: Key, name: str) -> Path:
        read = f"{key.kind}-{name}-{key.arm}-{key.layout}-{key.seed}".encode()[:READABLE].decode(errors="ignore")
        return self._directory / f"{read}-{key.digest}.json"

    @staticmethod
    def _read(path: Path) -> Cell | None:
        try:
            found = json.loads(path.read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and {"key", "name", "state", "ended"} <= found.keys() else None
