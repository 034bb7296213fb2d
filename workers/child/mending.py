"""What to ship where the network with its best configurations computes something else.

Without schedules every operator computes what TVM imported, so that a wrong network whose untuned import is right has an
operator whose schedule is wrong. Such an operator gets the fastest of its configurations that computes what it should.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workers.child.logged import fastest_first
from workers.child.verification import Turn

if TYPE_CHECKING:
    from workers.tvm_backend.library import Network, Timed
    from workers.tvm_backend.programs import Workload

TRIES = 20
"""Configurations of an operator, the fastest first, before it is left as plain loops: what makes one wrong and fast does so to
its like."""


def mended(
    network: Network, best: Mapping[int, Timed], log: Path, say: Callable[[str], None], turn: Turn
) -> tuple[dict[int, Timed], list[str]]:
    """Right configurations by operator, and the names of the operators that had a wrong one; an operator that none was found
    for is left out. Compares every operator with its plain loops, which for a large network takes a minute; each is named to
    `say` before, and others measure between any two programs: a `turn` is held while one is compiled and run."""
    kept, wrong, logged = dict(best), [], fastest_first(log)
    for index, first in best.items():
        fastest = logged.get(index, [])[:TRIES]
        name, others = network.extracted[index].name, [one for one in fastest if one[:2] != first[:2]]
        say(name)
        right = _right(network.workloads[index], [first, *others], turn)
        if right == first:
            continue
        wrong.append(name)
        del kept[index]
        if right is not None:
            kept[index] = right
    return kept, wrong


def _right(workload: Workload, configurations: Sequence[Timed], turn: Turn) -> Timed | None:
    """The first that computes what the operator computes."""
    from workers.tvm_backend.plain import Plain

    with turn():
        plain = Plain(workload)
    for configuration in configurations:
        with turn(), suppress(Exception):  # Invalid, or whatever TVM and LLVM raise: then it is not that one
            if plain.computes(*configuration[:2]):
                return configuration
    return None
