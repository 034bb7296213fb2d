"""What the tuning log of a run tells of the configurations of its operators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workers.messages.orders import latest
from workers.messages.tuning_log import measurements_in

if TYPE_CHECKING:
    from workers.tvm_backend.library import Timed


def fastest_first(log: Path) -> dict[int, list[Timed]]:
    """By operator, the configurations in the tuning log at `log` that ran in their latest rounds, with the seconds of those."""
    found: dict[int, set[Timed]] = {}
    for row in latest(measurements_in(log)):
        configuration = (int(row["sketch"]), tuple(row["choices"]), float(row["seconds"]))
        found.setdefault(int(row["operator"]), set()).add(configuration)
    return {index: sorted(known, key=lambda one: one[2]) for index, known in found.items()}
