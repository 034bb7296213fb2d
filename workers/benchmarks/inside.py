"""A tuned network beside the sum of its operators, timed in turns within one process: a JSON order on standard input, a
result on standard output.

What the tuning recorded was timed minutes before the library: a ratio of the two also tells what the machine did meanwhile.
An order: {spec, folder: of the library}. The result: {operators: see `figures`}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from workers.baselines.inputs import seeded_inputs
from workers.benchmarks.interval import Interval
from workers.benchmarks.part import Tell, answer, leave
from workers.child.network import configurations, import_cleaned
from workers.messages.spec import RunSpec

ROUNDS = 12
RUNS = 5
"""Of each operator alone, a round, behind a first one that fetches its program."""


@dataclass(frozen=True)
class Round:
    """Seconds of an inference, and by operator of all its calls in one: timed alone, and heard in the network, where an
    operator that is called under no name of its own is missing."""

    end_to_end: float
    alone: dict[int, float]
    inside: dict[int, float]


def compared(order: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Alone on the machine. Raises ArtifactFailed where the library is of other operators than the network is imported to."""
    from workers.tvm_backend import runtime

    spec, folder = RunSpec.from_json(order["spec"]), Path(order["folder"])
    runtime.load(spec.target)
    import tvm

    from workers.tvm_backend import rehearsal
    from workers.tvm_backend.arguments import Arguments
    from workers.tvm_backend.footprint import footprint
    from workers.tvm_backend.handover import Handover
    from workers.tvm_backend.library import Network
    from workers.tvm_backend.programs import argument_tensors, compile_program
    from workers.tvm_backend.stopwatch import Stopwatch

    cores, target = runtime.spread_threads(), tvm.target.Target(spec.target)
    metadata = json.loads((folder / "metadata.json").read_text())
    imported, inspection = import_cleaned(spec, target, metadata["layout"])
    network = Network.of(imported, target)
    tasks, programs = {}, {}
    for index, (sketch, choices, _) in configurations(metadata["operators"], network, spec).items():
        schedule = network.workloads[index].schedule(sketch, choices)
        tasks[index] = network.extracted[index]
        programs[index] = compile_program(schedule, target), argument_tensors(schedule.mod)
    handover = Handover(target, spec.threads)
    arguments = Arguments(footprint(network.imported.mod), handover)

    def alone(index: int) -> float:
        program, shapes = programs[index]
        given = arguments.of(index, shapes, **network.workloads[index].reading)
        return tasks[index].weight * median(Stopwatch(program, given, handover).runs(1 + RUNS)[1:])

    library = [rehearsal.machine(tvm.runtime.load_module(str(folder / "model.so")))]
    inputs = rehearsal.tensors(list(seeded_inputs(inspection, 0).values()))
    names = {task.name: index for index, task in tasks.items()}
    rounds = []
    with runtime.on_core(cores):
        for _ in range(ROUNDS):
            by_index = {index: alone(index) for index in programs}
            (whole,) = rehearsal.inference_seconds(library, inputs, rounds=1)
            ((heard,),) = rehearsal.operator_seconds(library, names, inputs, rounds=1)
            rounds.append(Round(whole, by_index, heard))
    return {"operators": figures(rounds, {index: (task.name, task.weight) for index, task in tasks.items()})}


def figures(rounds: Sequence[Round], operators: Mapping[int, tuple[str, int]]) -> dict[str, Any]:
    """{end_to_end, alone, inside: sums over the operators, ratio: of end to end to the sum alone, round by round, low, high:
    its interval, rows: [{index, name, weight, alone, inside | null}]}: medians in seconds of an inference; `operators` are
    names and weights."""
    ratio = Interval.of([one.end_to_end / sum(one.alone.values()) for one in rounds])
    assert ratio.bounds is not None, "ROUNDS are enough for an interval"
    return {
        "end_to_end": median(one.end_to_end for one in rounds),
        "alone": median(sum(one.alone.values()) for one in rounds),
        "inside": median(sum(one.inside.values()) for one in rounds),
        "ratio": ratio.median,
        "low": ratio.bounds[0],
        "high": ratio.bounds[1],
        "rows": [
            {
                "index": index,
                "name": name,
                "weight": weight,
                "alone": median(one.alone[index] for one in rounds),
                "inside": median(one.inside[index] for one in rounds) if index in rounds[0].inside else None,
            }
            for index, (name, weight) in sorted(operators.items())
        ],
    }


if __name__ == "__main__":
    leave(answer(compared))
