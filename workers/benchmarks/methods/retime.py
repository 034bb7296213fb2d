"""Configurations of a network's operators, those of one operator timed in turns with each other: a JSON order on standard
input, events on standard output.

An order: {spec, asked: {operator: {key, programs: ["sketch choices", ...]}}}. An event for each of them, {kind: operator,
operator, seconds: [...]}, in its programs' order.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from workers.benchmarks.bench import Bench
from workers.benchmarks.part import Tell, answer, leave
from workers.messages.spec import RunSpec
from workers.sandbox.lock import MeasureLock

ROUNDS = 5
"""More than a run has for its own last figures (`estimate.TURNS`): these are all that is compared."""


def retimed(order: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Raises ArtifactFailed where the network's operators are others than those that were tuned."""
    from workers.tvm_backend import runtime

    spec = RunSpec.from_json(order["spec"])
    runtime.load(spec.target)
    import tvm

    from workers.child.network import import_cleaned, place_of
    from workers.tvm_backend.library import Network

    target = tvm.target.Target(spec.target)
    network = Network.of(import_cleaned(spec, target, spec.layout)[0], target)
    bench, lock = Bench(spec, target, network.imported.mod, network.workloads), MeasureLock()
    for place, asked in order["asked"].items():
        operator = place_of(network, place, asked["key"])
        seconds = _in_turns(bench, network.workloads[operator], operator, asked["programs"], lock)
        tell({"kind": "operator", "operator": place, "seconds": seconds})
    return {}


def _in_turns(bench: Bench, workload: Any, operator: int, programs: Sequence[str], lock: MeasureLock) -> list[float]:
    with lock.shared():
        ready = []
        for program in programs:
            sketch, *choices = map(int, program.split())
            ready.append(bench.ready(operator, workload.schedule(sketch, tuple(choices))))
    times: list[list[float]] = [[] for _ in ready]
    with lock.exclusive(), bench.on_core():
        for _ in range(ROUNDS):
            for one, taken in zip(ready, times, strict=True):
                taken.append(bench.seconds(one))
    return [median(taken) for taken in times]


if __name__ == "__main__":
    leave(answer(retimed))
