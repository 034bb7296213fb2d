"""Configurations that were about as fast as the best, timed again where they will run: in the network.

Timed alone, an operator meets caches and neighbours that are only like the network's. Of configurations within a tenth of
each other the fastest alone is often not the fastest there: a convolution of a MobileNet took 385 us and its rival 282,
recorded as equals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.baselines.inputs import seeded_inputs
from workers.child.logged import fastest_first
from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.networks.inspect import Inspection

if TYPE_CHECKING:
    from tvm import relax

    from workers.tvm_backend.library import Network, Timed

RIVALS = 3
"""Of each operator, beside its best, at most; every one costs a build of the whole network."""
SHARE = 0.1
"""Of the tuning time that a rehearsal may take: after two minutes the same time brings more in tuning. While builds have a
turn nothing else is timed on the machine, so a slow network is not rehearsed for hours either."""
DEARER = 2.0
"""Times what it takes to compile a network: its machine code is made when it is first run, which takes as long."""
WITHIN = 1.1
"""Times the best: slower ones alone do not win in the network."""
GAIN = 0.02
"""Of an operator's time in the network that a rival must save; less is noise."""
HEAVY = 2**30
"""Bytes of weights that all builds may hold together; of larger networks the best are taken as they are."""

UNREHEARSED = (
    "rivals of the fastest configurations were not timed in the network, which does not compile with one of them ({})"
)

Best = Mapping[int, "Timed"]


@dataclass(frozen=True)
class Rehearsal:
    """`operators` had rivals, `changed` of them another configuration than the fastest alone; seconds of an inference
    with the fastest alone and with the chosen ones, in turns (None where nothing changed)."""

    operators: int
    changed: int
    before: float | None = None
    after: float | None = None

    @property
    def sentence(self) -> str:
        if self.before is None or self.after is None:
            return f"in the network, too, the fastest of {self.operators} operators with rivals are the fastest"
        return (
            f"{self.changed} of {self.operators} operators with rivals are faster in the network with another "
            f"configuration: {1e3 * self.before:.3f} ms before, {1e3 * self.after:.3f} ms with them"
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": self.sentence}


def rehearsed(
    network: Network,
    best: Best,
    log: Path,
    tuned: float,
    latency: float | None,
    inspection: Inspection,
    cores: Sequence[int],
    pulse: Pulse,
) -> tuple[dict[int, Timed], relax.VMExecutable, Rehearsal | None]:
    """The configurations to ship, the network built with them, and what the rehearsal found: None where there was nothing
    to choose from, or too little time: `tuned` are the seconds of tuning, `latency` what an inference took at its end (None:
    unknown). `cores` are those of `runtime.spread_threads`."""
    from workers.tvm_backend import rehearsal, runtime
    from workers.tvm_backend.importer import last_line

    def phase(name: str, text: str) -> None:
        pulse.tell("phase", name=name, text=text)

    lock, chosen = TurnLock(pulse), dict(best)

    # Whoever waits has the machine between any two of these: together they take up to a tenth of the time of tuning.
    @contextmanager
    def alone() -> Iterator[None]:
        with lock.exclusive(), runtime.on_core(cores):
            yield

    def built(configurations: Best) -> relax.VMExecutable:
        with lock.shared():
            return network.compiled(configurations)

    def warmed(build: relax.VMExecutable) -> relax.VirtualMachine:
        with lock.shared():
            return rehearsal.warmed(build, inputs)

    with lock.shared():
        began = time.monotonic()
        builds = [network.compiled(best)]
        build = time.monotonic() - began
    turn = rehearsal.shortest_turns(latency) if latency else math.inf
    count = affordable(tuned, build, turn, inspection.parameter_bytes)
    with lock.shared():  # hours of a log
        candidates = rivals(log, best, count) if count > 0 else {}
    try:
        builds += [built(variant) for variant in variants(best, candidates)]
    except Exception as error:
        # Whatever TVM's C++ throws; alone a rival ran, with packed weights nobody built it yet.
        pulse.tell("log", level="warning", text=UNREHEARSED.format(last_line(error)))
        del builds[1:]
    if len(builds) == 1:
        return chosen, builds[0], None
    phase("rehearsing", f"timing rivals of {len(candidates)} operators in the network")
    inputs = rehearsal.tensors(list(seeded_inputs(inspection, 0).values()))
    machines = [warmed(build) for build in builds]
    heard = rehearsal.operator_seconds(machines, network.indices, inputs, alone=alone)
    faster = choice(candidates, heard)
    if not faster:
        return chosen, builds[0], Rehearsal(len(candidates), 0)
    del builds[1:], machines[1:]
    phase("compiling", f"compiling the network with {len(faster)} other configurations")
    builds.append(built(chosen | faster))
    phase("rehearsing", "timing the network with and without them")
    before, after = rehearsal.inference_seconds([*machines, warmed(builds[1])], inputs, alone=alone)
    if after >= before:
        return chosen, builds[0], Rehearsal(len(candidates), 0)
    return chosen | faster, builds[1], Rehearsal(len(candidates), len(faster), before, after)


def affordable(tuned: float, build: float, turns: float, weights: int) -> int:
    """Rivals of each operator, so that their builds and that of the choice, and then the turns of all and those of the choice
    and the bests, take at most SHARE of the seconds `tuned`, and all of them hold at most HEAVY bytes of weights; seconds to
    `build`, of `turns`, and bytes of `weights` are those of one."""
    room = SHARE * tuned - 2 * turns
    return min(RIVALS, int(room / (DEARER * build + turns)) - 1 if room > 0 else 0, HEAVY // max(weights, 1) - 1)


def rivals(log: Path, best: Best, count: int) -> dict[int, list[Timed]]:
    """By operator, its best and then its `count` fastest others in the tuning log at `log` that took at most WITHIN times
    the best; operators without a rival are left out."""
    candidates = {}
    for index, ranked in fastest_first(log).items():
        if (first := best.get(index)) is None:
            continue
        others = [other for other in ranked if other[:2] != first[:2] and other[2] <= WITHIN * first[2]]
        if others:
            candidates[index] = [first, *others[:count]]
    return candidates


def variants(best: Best, candidates: Mapping[int, Sequence[Timed]]) -> list[dict[int, Timed]]:
    """Networks to build beside that of the bests: each with every operator's next rival, or its last."""
    most = max((len(configurations) for configurations in candidates.values()), default=1)
    return [
        dict(best) | {index: ranked[min(place, len(ranked) - 1)] for index, ranked in candidates.items()}
        for place in range(1, most)
    ]


def choice(
    candidates: Mapping[int, Sequence[Timed]], heard: Sequence[Sequence[Mapping[int, float]]]
) -> dict[int, Timed]:
    """The rivals that beat their operator's best in the network by more than GAIN; `heard` are seconds by variant, round
    and operator. Compared within rounds: a change of the machine's speed hits all who take turns."""
    chosen = {}
    for index, ranked in candidates.items():
        if any(index not in told for told in heard[0]):
            continue
        ratios = [
            float(np.median([told[index] / first[index] for told, first in zip(turns, heard[0], strict=True)]))
            for turns in heard[: len(ranked)]
        ]
        fastest = int(np.argmin(ratios))
        if ratios[fastest] < 1 - GAIN:
            chosen[index] = ranked[fastest]
    return chosen
