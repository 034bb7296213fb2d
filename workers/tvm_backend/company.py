"""Which programs are compiled together: a module takes time besides what is in it, and the last one keeps other workers
waiting."""

from __future__ import annotations

from collections.abc import Sequence

from workers.engine.thrift import Thrift
from workers.tvm_backend.members import Member, Task

MOST = 4
"""Programs in one module. Of 96 of a transformer, SqueezeNet and ResNet-50 each one took 0.80 to 0.96 of its time alone in
modules of two, 0.73 to 0.91 in modules of four, 0.74 to 0.81 in modules of eight."""
SECONDS = 0.3
"""That a module is expected to take, at most, but for one of a single program."""


def company(ready: Sequence[Task], member: Member, members: int, thrift: Thrift) -> list[Task]:
    """What `member` compiles now of what is `ready`, not empty: those with most code, of those it has scheduled itself where
    there are such. A share of what is left, so that the last modules are small and `members` workers end together."""
    first, *others = sorted(ready, key=lambda task: (task.applier is not member, -task.size, task.id))
    if first.alone:
        return [first]
    group, seconds = [first], thrift.expected(first.size)
    most = min(MOST, -(-len(ready) // (2 * members)))
    for task in others:
        seconds += thrift.expected(task.size)
        if len(group) >= most or seconds > SECONDS:
            break
        if not task.alone:
            group.append(task)
    return group
