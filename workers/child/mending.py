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
    from workers.tvm_backend.library import Configuration, Network
    from workers.tvm_backend.programs import Workload

TRIES = 20
"""Configurations of an operator, the fastest first, before it is left as plain loops: what makes one wrong and fast does so to
its like."""


def mended(
    network: Network,
    best: Mapping[int, Configuration],
    log: Path | None,
    turn: Callable[[str], AbstractContextManager[Any]],
) -> tuple[dict[int, Configuration], list[str]]:
    """Right configurations by operator, and the names of the operators that had a wrong one; an operator that none was found
    for is left out. Runs every operator as plain loops, which for a large network takes a minute, inside `turn` of its name."""
    kept, wrong = dict(best), []
    for index in best:
        name = network.extracted[index].name
        with turn(name):
            right = _right(network.workloads[index], [best[index], *_others(log, index, best[index])[:TRIES]])
        if right == best[index]:
            continue
        wrong.append(name)
        del kept[index]
        if right is not None:
            kept[index] = right
    return kept, wrong


def _right(workload: Workload, configurations: Sequence[Configuration]) -> Configuration | None:
    """The first that computes what the operator computes."""
    from workers.tvm_backend.soundness import Plain

    plain = Plain(workload)
    for configuration in configurations:
        with suppress(Exception):  # Invalid, or whatever TVM and LLVM raise: then it is not that one
            if plain.computes(*configuration[:2]):
                return configuration
    return None


def _others(log: Path | None, index: int, first: Configuration) -> list[Configuration]:
    """Of an operator, those in the tuning log but the first, the fastest first."""
    if log is None:
        return []
    rows = [row for row in latest(measurements_in(log)) if int(row["operator"]) == index]
    found = {(int(row["sketch"]), tuple(row["choices"]), float(row["seconds"])) for row in rows}
    return sorted((one for one in found if one[:2] != first[:2]), key=lambda one: one[2])
