"""The best programs that a search left, timed in turns: a JSON order on standard input, a result on standard output.

An order: {spec, layout, sets: of programs, each {records: the directory of a database in TVM's format, whole: whether it must
hold every operator} or {best: configurations as an order to compile has them}}. The result: {latencies: of each set the
weighted sum in s, timed in turns with the others', null where an operator has no program, for ours leave some as they are; key:
of the operators, see `operators_key`}.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from workers.benchmarks.bench import Bench
from workers.benchmarks.identity import operators_key
from workers.benchmarks.part import Tell, answer, leave
from workers.benchmarks.stock import imported
from workers.engine.evaluator.estimate import TURNS
from workers.messages.spec import RunSpec


def judged(order: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Alone on the machine. Raises KeyError naming an operator that has no record, and ArtifactFailed for configurations of
    other operators."""
    from workers.tvm_backend import runtime

    spec = RunSpec.from_json(order["spec"])
    runtime.load(spec.target)
    import tvm

    from workers.tvm_backend.operators import extract
    from workers.tvm_backend.programs import Workload, key_of

    target = tvm.target.Target(spec.target)
    module, _ = imported(order, spec, target)
    extracted = extract(module.mod, target)
    bench = Bench(spec, target, module.mod, [Workload(task.mod, (), target) for task in extracted])
    sets = []
    for one in order["sets"]:
        found = _configured(one["best"], module, spec, target) if "best" in one else _recorded(one, extracted, target)
        places = ((index, found[task.name]) for index, task in enumerate(extracted) if task.name in found)
        sets.append({index: bench.ready(index, schedule) for index, schedule in places})
    times: list[dict[int, list[float]]] = [{} for _ in sets]
    with bench.on_core():
        for _ in range(TURNS):
            for index in range(len(extracted)):
                for programs, taken in zip(sets, times, strict=True):
                    if index in programs:
                        taken.setdefault(index, []).append(bench.seconds(programs[index]))
    sums = [
        sum(task.weight * median(taken[index]) for index, task in enumerate(extracted))
        if len(taken) == len(extracted)
        else None
        for taken in times
    ]
    return {"latencies": sums, "key": operators_key(key_of(task.mod) for task in extracted)}


def _recorded(one: dict[str, Any], extracted: Any, target: Any) -> dict[str, Any]:
    """Schedules by the operator's name."""
    from tvm.s_tir import meta_schedule as ms

    records = ms.database.JSONDatabase(work_dir=one["records"])
    found = {task.name: records.query_schedule(task.mod, target, task.name) for task in extracted}
    if one["whole"] and (lacking := [name for name, schedule in found.items() if schedule is None]):
        raise KeyError(f"operator {lacking[0]} has no record")
    return {name: schedule for name, schedule in found.items() if schedule is not None}


def _configured(best: dict[str, Any], module: Any, spec: RunSpec, target: Any) -> dict[str, Any]:
    """The same."""
    from workers.child.network import configurations
    from workers.tvm_backend.library import Network

    network = Network.of(module, target)
    return {
        network.extracted[index].name: network.workloads[index].schedule(sketch, choices)
        for index, (sketch, choices, _) in configurations(best, network, spec).items()
    }


if __name__ == "__main__":
    leave(answer(judged))
