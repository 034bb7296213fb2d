"""The layout of the whole network: drawn up in one, or in each and measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import onnx
import tvm

from workers.engine.gpu import Gpu
from workers.engine.machine import Machine
from workers.engine.ports import Candidate
from workers.engine.space import Operator
from workers.messages.spec import RunSpec
from workers.tvm_backend.arguments import Footprint
from workers.tvm_backend.footprint import footprint
from workers.tvm_backend.importer import import_network
from workers.tvm_backend.operators import FIRST, extract, operators, with_spaces
from workers.tvm_backend.pool import Pool
from workers.tvm_backend.programs import Workload

BOTH = ("NHWC", "NCHW")
"""The first is what is chosen without measuring."""
CLEARLY = 0.9
"""Times the latency of the first of BOTH: first configurations are not what tuning ends with."""
CHUNK = 16
"""Operators that are measured between two reports."""


@dataclass(frozen=True)
class Drawn:
    """A network in one layout: its operators, which `described` tells when they are asked for, how they are scheduled, what an
    inference touches, and how many operators TVM has no schedules for."""

    layout: str
    notes: tuple[str, ...]
    described: Callable[[], list[Operator]]
    workloads: list[Workload]
    touched: Footprint
    left: int

    @cached_property
    def operators(self) -> list[Operator]:
        """Of a large network they take seconds."""
        return self.described()

    def latency(self, pool: Pool, report: Callable[[str, str], None]) -> float:
        """Seconds: weight x time of each operator's first configuration that runs, in `pool`, which has these workloads;
        infinite where none of an operator's does."""
        taken: dict[int, float] = {}
        with pool.apart():
            for place in range(FIRST):
                open_ones = [one for one in self.operators if one.index not in taken and place < len(one.start)]
                for some in range(0, len(open_ones), CHUNK):
                    report("spaces", f"measuring the operators' first configurations in {self.layout}")
                    plan = [Candidate(one.index, one.start[place], "start") for one in open_ones[some : some + CHUNK]]
                    outcomes = pool.measure(plan, set(), {})
                    taken |= {outcome.candidate.operator: outcome.seconds for outcome in outcomes if outcome.seconds}
        return sum(one.weight * taken.get(one.index, math.inf) for one in self.operators)


def draw(
    spec: RunSpec,
    model: onnx.ModelProto,
    target: tvm.target.Target,
    machine: Machine | Gpu,
    report: Callable[[str, str], None],
    layout: str,
) -> Drawn:
    """Imports the network and generates its design spaces. `report(phase, text)` tells what is being done."""
    report("importing", "importing the network and folding its constants")
    imported = import_network(model, spec.inputs, target, layout, spec.balance)
    extracted = extract(imported.mod, target)
    layout, notes, touched = imported.layout, imported.notes, footprint(imported.mod)
    del imported  # with the weights, which only the process that compiles the whole network needs
    report("spaces", f"drawing up the design spaces of {len(extracted)} operators")
    extracted, workloads, left = with_spaces(extracted, target)
    if left:
        notes += (f"operators that TVM has no schedules for, compiled as they are: {', '.join(left)}",)
    described = partial(operators, extracted, workloads, spec.peak_flops, spec.bandwidth, machine)
    return Drawn(layout, notes, described, workloads, touched, len(left))


def clearly_fastest(latencies: Sequence[float]) -> int:
    """Which of the ways with these latencies is taken: the first, unless another takes under CLEARLY of its time. One of which
    some operator could not be measured is no worse for that, and is not left."""
    best = min(range(len(latencies)), key=latencies.__getitem__)
    return best if math.isfinite(latencies[0]) and latencies[best] < CLEARLY * latencies[0] else 0
