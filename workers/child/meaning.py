"""What an operator's choices and times mean, so that none is read as another version's."""

from __future__ import annotations

from collections.abc import Sequence

from workers.engine.known import space_of
from workers.engine.space import Sketch
from workers.messages.spec import RunSpec


def meaning(sketches: Sequence[Sketch], spec: RunSpec) -> str:
    """Of an operator with these sketches in a run of `spec`, by what makes programs here; as `Operator` rows tell it."""
    from workers.tvm_backend import lowering, runtime
    from workers.tvm_backend.programs import LEVEL

    version = f"{runtime.versions()['apache-tvm']} at level {LEVEL}, lowered {lowering.VERSION}"
    return space_of(sketches, spec.target, spec.threads, version)
