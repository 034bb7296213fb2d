"""Parts of the spaces of the largest operators, measured whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workers.engine.methods import Method
from workers.engine.space import Operator
from workers.landscapes import files
from workers.landscapes.landscape import LandscapeError
from workers.landscapes.recorder.folder import same_network, space_path
from workers.landscapes.recorder.part import PROBES, Part, TimedBackend, subspace_of
from workers.landscapes.recorder.watch import Watch
from workers.landscapes.spaces import Measured, SpaceRecording


def record_spaces(
    make: Callable[[], TimedBackend], method: Method, count: int, size: int, folder: Path, watch: Watch, seed: int = 0
) -> tuple[Operator, ...] | None:
    """Parts of at most `size` configurations of the `count` largest operators. All operators; None when stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    backend = make()
    try:
        found = tuple(backend.operators())
        same_network(folder, found)
        chosen = largest(found, count, size)
        done = sum(space_path(folder, o.index).exists() for o in chosen)
        each = size + min(PROBES, size)
        watch.start(len(chosen) * each, done * each)
        for place, operator in enumerate(chosen):
            where = f"operator {place + 1} of {len(chosen)} ({operator.name})"
            if not space_path(folder, operator.index).exists():
                part = Part(backend, operator, folder, watch, where)
                if not part.measure(method, size, seed):
                    return None
        return found
    finally:
        backend.close()


def spaces_of(
    folder: Path, operators: Sequence[Operator], count: int, size: int, header: dict[str, Any]
) -> SpaceRecording:
    """What `record_spaces` left in `folder`; the operators are numbered anew, from 0."""
    parts = []
    for place, operator in enumerate(largest(operators, count, size)):
        found, arrays = files.read(space_path(folder, operator.index), "space part")
        parts.append(Measured.of_arrays(replace(subspace_of(found).restricted(operator), index=place), arrays))
    return SpaceRecording({**header, "fingerprint": files.fingerprint(operators)}, tuple(parts))


def largest(operators: Sequence[Operator], count: int, size: int) -> list[Operator]:
    """The `count` operators with the most work among those with arithmetic and at least `size` configurations."""
    able = [o for o in operators if o.flops > 0 and o.size >= size]
    if not able:
        raise LandscapeError(
            f"no operator has arithmetic and {size} configurations; take another network or fewer (--configurations)"
        )
    return sorted(sorted(able, key=lambda o: -o.weight * o.work)[:count], key=lambda o: o.index)
