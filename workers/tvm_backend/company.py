"""Which programs are compiled together: a module takes time besides what is in it, and the last one keeps other workers
waiting."""

from __future__ import annotations

from collections.abc import Sequence

from workers.engine.thrift import Thrift
from workers.tvm_backend.members import Member, Task

COMPANY = 4
"""Programs in one module. Of 96 of a transformer, SqueezeNet and ResNet-50 each one took 0.80 to 0.96 of its time alone in
modules of two, 0.73 to 0.91 in modules of four, 0.74 to 0.81 in modules of eight."""
SECONDS = 0.3
"""That a module is expected to take, at most, but for one of a single program."""
EMPTY = 150.0
"""Units of code that compile as long as what is no store of a program: of 3,000 programs of those networks one took 45 ms and
0.2 to 0.4 ms a unit."""


def company(ready: Sequence[Task], member: Member, members: int, thrift: Thrift) -> list[Task]:
    """What `member` compiles now of what is `ready`, not empty: those first that it has scheduled itself, and of them those
    with most code. A share of what is left, so that the last modules are small and `members` workers end together; one
    before anything is known of how long programs take."""
    first, *others = sorted(ready, key=lambda task: (task.applier is not member, -task.size, task.id))
    if first.alone or not thrift.knows:
        return [first]
    group, seconds = [first], thrift.expected(first.size)
    most = min(COMPANY, -(-len(ready) // (2 * members)) if members > 1 else len(ready))
    for task in others:
        if task.alone:
            continue
        seconds += thrift.expected(task.size)
        if len(group) >= most or seconds > SECONDS:
            break
        group.append(task)
    return group


def shared(seconds: float, group: Sequence[Task]) -> list[float]:
    """What each of a module's programs took of its `seconds`, by their code."""
    code = [EMPTY + task.size for task in group]
    rate = seconds / sum(code)
    return [rate * one for one in code]
