"""The best programs that a search left, timed as ours are while it runs: a JSON order on standard input, a result on
standard output.

TVM's runner leaves threads where Linux puts them and weights in the caches, ours does not (`Stopwatch`, `Arguments`): a
sum by one instrument says little about a sum by the other. An order: {spec, layout, work_dir: where the database is in
TVM's format, whole: whether it must hold every operator; ours leave some as they are}.
The result: {latency: weighted sum in s, key: of the operators, see `operators_key`}.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from workers.benchmarks.identity import operators_key
from workers.benchmarks.part import Tell, answer, leave
from workers.benchmarks.stock import imported
from workers.engine.methods import method
from workers.messages.spec import RunSpec


def judged(order: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Alone on the machine. Raises KeyError naming an operator that has no record."""
    from workers.tvm_backend import runtime

    spec = RunSpec.from_json(order["spec"])
    runtime.load(spec.target)
    import tvm
    from tvm.s_tir import meta_schedule as ms

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
    records = ms.database.JSONDatabase(work_dir=order["work_dir"])
    evaluator, cores, latency = method("auto").make_evaluator(), runtime.spread_threads(), 0.0
    handover, moment = Handover(target), Moment(target)
    arguments = Arguments(footprint(extracted, workloads), handover)
    for index, (task, workload) in enumerate(zip(extracted, workloads, strict=True)):
        schedule = records.query_schedule(task.mod, target, task.name)
        if schedule is None:
            if order["whole"]:
                raise KeyError(f"operator {task.name} has no record")
            continue
        program = compile_program(schedule, target)
        given = arguments.of(index, argument_tensors(schedule.mod), workload.weights, workload.batch)
        with runtime.on_core(cores):
            stopwatch = Stopwatch(program, given, handover)
            (times, _), _ = moment.of(partial(timed, stopwatch, evaluator, None), QUIET)
        latency += task.weight * evaluator.estimate(times)[0]
    return {"latency": latency, "key": operators_key(key_of(task.mod) for task in extracted)}


if __name__ == "__main__":
    leave(answer(judged))
