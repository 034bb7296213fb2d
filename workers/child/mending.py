"""What to ship where the network with its best configurations computes something else.

Without schedules every operator computes what TVM imported, so that a wrong network whose untuned import is right has an
operator whose schedule is wrong. Such an operator gets the fastest of its configurations that computes what it should.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.messages.orders import latest
from workers.messages.tuning_log import measurements_in

if TYPE_CHECKING:
    from workers.tvm_backend.library import Network, Timed
    from workers.tvm_backend.programs import Workload

TRIES = 20
"""Configurations of an operator, the fastest first, before it is left as plain loops: what makes one wrong and fast does so to
its like."""


def mended(
    network: Network,
    best: Mapping[int, Timed],
    log: Path | None,
    turn: Callable[[str], AbstractContextManager[Any]],
) -> tuple[dict[int, Timed], list[str]]:
    """Right configurations by operator, and the names of the operators that had a wrong one; an operator that none was found
    for is left out. Runs every operator as plain loops, which for a large network takes a minute, inside `turn` of its name."""
    kept, wrong, logged = dict(best), [], _fastest(log) if log else {}
    for index, first in best.items():
        name, others = network.extracted[index].name, [one for one in logged.get(index, ()) if one[:2] != first[:2]]
        with turn(name):
            right = _right(network.workloads[index], [first, *others])
        if right == first:
            continue
        wrong.append(name)
        del kept[index]
        if right is not None:
            kept[index] = right
    return kept, wrong


def _right(workload: Workload, configurations: Sequence[Timed]) -> Timed | None:
    """The first that computes what the operator computes."""
    from workers.tvm_backend.plain import Plain

    plain = Plain(workload)
    for configuration in configurations:
        with suppress(Exception):  # Invalid, or whatever TVM and LLVM raise: then it is not that one
            if plain.computes(*configuration[:2]):
                return configuration
    return None


def _fastest(log: Path) -> dict[int, list[Timed]]:
    """By operator, the fastest TRIES in the tuning log, in order."""
    found: dict[int, set[Timed]] = {}
    for row in latest(measurements_in(log)):
        configuration = (int(row["sketch"]), tuple(row["choices"]), float(row["seconds"]))
        found.setdefault(int(row["operator"]), set()).add(configuration)
    return {index: sorted(known, key=lambda one: one[2])[:TRIES] for index, known in found.items()}
