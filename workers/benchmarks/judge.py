"""The best programs that a search left, timed as ours are while it runs: a JSON order on standard input, a result on
standard output.

TVM's runner leaves threads where Linux puts them and weights in the caches, ours does not (`Stopwatch`, `Arguments`): a
sum by one instrument says little about a sum by the other. An order: {spec, layout, sets: of programs, each {records: the
directory of a database in TVM's format, whole: whether it must hold every operator; ours leave some as they are} or {best:
configurations as an order to compile has them}}. The result: {latencies: of each set the weighted sum in s, timed in turns
with the others', key: of the operators, see `operators_key`}.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

from workers.benchmarks.identity import operators_key
from workers.benchmarks.part import Tell, answer, leave
from workers.benchmarks.stock import imported
from workers.engine.evaluator.estimate import TURNS
from workers.engine.methods import method
from workers.messages.spec import RunSpec


def judged(order: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Alone on the machine. Raises KeyError naming an operator that has no record, and ArtifactFailed for configurations of
    other operators."""
    from workers.tvm_backend import runtime

    spec = RunSpec.from_json(order["spec"])
    runtime.load(spec.target)
    import tvm

    from workers.tvm_backend.arguments import Arguments
    from workers.tvm_backend.handover import Handover
    from workers.tvm_backend.moment import Moment
    from workers.tvm_backend.operators import extract, footprint
    from workers.tvm_backend.pool import QUIET
    from workers.tvm_backend.programs import Workload, argument_tensors, compile_program, key_of
    from workers.tvm_backend.stopwatch import Stopwatch, timed

    target = tvm.target.Target(spec.target)
    module, _ = imported(order, spec, target)
    extracted = extract(module.mod, target)
    workloads = [Workload(task.mod, (), target) for task in extracted]
    sets = []
    for one in order["sets"]:
        found = _configured(one["best"], module, target) if "best" in one else _recorded(one, extracted, target)
        sets.append({name: (compile_program(s, target), argument_tensors(s.mod)) for name, s in found.items()})
    evaluator, cores = method("auto").make_evaluator(), runtime.spread_threads()
    handover, moment = Handover(target, spec.threads), Moment(target, spec.threads)
    arguments = Arguments(footprint(extracted, workloads), handover)
    times: list[dict[int, list[float]]] = [{} for _ in sets]
    with runtime.on_core(cores):
        for _ in range(TURNS):
            for index, (task, workload) in enumerate(zip(extracted, workloads, strict=True)):
                for programs, taken in zip(sets, times, strict=True):
                    if task.name not in programs:
                        continue
                    program, shapes = programs[task.name]
                    given = arguments.of(index, shapes, workload.weights, workload.batch)
                    stopwatch = Stopwatch(program, given, handover)
                    (runs, _), _ = moment.of(partial(timed, stopwatch, evaluator, None), QUIET)
                    taken.setdefault(index, []).append(evaluator.estimate(runs)[0])
    sums = [sum(extracted[index].weight * median(found) for index, found in taken.items()) for taken in times]
    return {"latencies": sums, "key": operators_key(key_of(task.mod) for task in extracted)}


def _recorded(one: dict[str, Any], extracted: Any, target: Any) -> dict[str, Any]:
    """Schedules by the operator's name."""
    from tvm.s_tir import meta_schedule as ms

    records = ms.database.JSONDatabase(work_dir=one["records"])
    found = {task.name: records.query_schedule(task.mod, target, task.name) for task in extracted}
    if one["whole"] and (lacking := [name for name, schedule in found.items() if schedule is None]):
        raise KeyError(f"operator {lacking[0]} has no record")
    return {name: schedule for name, schedule in found.items() if schedule is not None}


def _configured(best: dict[str, Any], module: Any, target: Any) -> dict[str, Any]:
    """The same."""
    from workers.child.artifact import configurations
    from workers.tvm_backend.library import Network

    network = Network.of(module, target)
    return {
        network.extracted[index].name: network.workloads[index].schedule(sketch, choices)
        for index, (sketch, choices, _) in configurations(best, network).items()
    }


if __name__ == "__main__":
    leave(answer(judged))
