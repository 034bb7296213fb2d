"""Which cells a comparison has: landscapes or networks, methods and probes, and seeds."""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from workers.benchmarks.cells import Cells, Key
from workers.benchmarks.identity import COMPOSING, ENGINE, FOLDING, TUNED, product_version
from workers.benchmarks.machine import Machine, Network, all_opened
from workers.benchmarks.methods import live, replayed
from workers.benchmarks.methods.arms import SCHEDULING, SEARCHING, arm_named
from workers.benchmarks.methods.one_clock import LIVE, Clock
from workers.benchmarks.methods.probes import PROBES, Probe
from workers.benchmarks.methods.replayed import CURVE, SPACE, Source
from workers.benchmarks.progress import Progress
from workers.engine.methods import METHODS, Method
from workers.headless.arguments import refuse_knowing
from workers.headless.errors import UserMistake
from workers.messages.composition import KNOWING
from workers.messages.spec import ALL

KIND, PROBE = "methods", "probe"
REPLAYED = (
    "workers/headless/content.py",
    ENGINE,
    "workers/pipeline",
    "workers/landscapes",
    *COMPOSING,
    *FOLDING,
    "workers/benchmarks/methods/replayed.py",
)
PROBING = (
    *REPLAYED,
    "workers/benchmarks/interval.py",
    *(f"workers/benchmarks/methods/{part}.py" for part in ("probes", "walks", "samplings", "arms")),
)
PLAYED = (*TUNED, "workers/benchmarks/methods/live.py")
GUESS = 5.0  # s of a replay
OVERHEAD = 5.0  # s of a live cell beside its tuning


@dataclass(frozen=True)
class Part:
    """One cell to be filled by `run`, which is given a directory and the progress line."""

    name: str
    key: Key
    estimate: float
    run: Callable[[Path, Progress], dict[str, Any]]

    @property
    def label(self) -> str:
        return f"{self.name} {self.key.layout} {self.key.arm} seed {self.key.seed}"


def seeds_of(text: str) -> list[int]:
    """ "0..4" or "0,2,7"; raises UserMistake."""
    try:
        if ".." in text:
            first, last = (int(word) for word in text.split(".."))
            found = list(range(first, last + 1))
        else:
            found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 0:
        raise UserMistake(f"--seeds {text!r} must be whole numbers from 0 on, like 0..4 or 0,2,7")
    return list(dict.fromkeys(found))


def replayed_parts(
    arguments: argparse.Namespace, out: Path, seen: Callable[[Source], None] = lambda source: None
) -> list[Part]:
    """The cells of every landscape, each of which is shown to `seen`; raises UserMistake."""
    if arguments.seconds is not None:
        raise UserMistake("--seconds is for --live; a replay is told its --trials-per-operator")
    if arguments.trials_per_operator is not None and arguments.trials_per_operator < 1:
        raise UserMistake(f"--trials-per-operator {arguments.trials_per_operator} must be at least 1")
    asked = _words(arguments.methods)
    named = {name: arm_named(name) for name in asked or () if name not in PROBES}
    defaults = ((CURVE, SCHEDULING), (SPACE, SEARCHING))
    arms = {kind: _known(default) if asked is None else named for kind, default in defaults}
    probes = {name: PROBES[name] for name in asked or PROBES if name in PROBES}
    every = [arm for of_kind in arms.values() for arm in of_kind.values()]
    version, probing, parts = product_version(REPLAYED), product_version(PROBING), list[Part]()
    words, seeds = _words(arguments.networks), seeds_of(arguments.seeds)
    for source in replayed.sources(arguments.landscape, words, every, out, arguments.operators):
        seen(source)
        trials = source.trials(arguments.trials_per_operator)
        for name, arm in _as_named(source, arms[source.kind], asked is not None).items():
            budget = f"{trials} trials of {_digest(arm)} at {source.costs.digest(arm)}"
            key = partial(_key, KIND, source, name, budget=budget, version=version)
            parts += [Part(source.name, key(seed), GUESS, _replay(source, arm, seed, trials)) for seed in seeds]
        parts += [
            Part(
                source.name,
                _key(PROBE, source, name, seed, arguments.operators, probing),
                GUESS,
                _asked(probe, source, seed),
            )
            for name, probe in probes.items()
            if probe.kind == source.kind
            for seed in (seeds[:1] if probe.once else seeds)
        ]
    return parts


def _as_named(source: Source, arms: Mapping[str, Method], asked: bool) -> Mapping[str, Method]:
    """Those that are on `source` what they are called; of the others a line is said. The oracle is shown recorded curves, and a
    space has none before it is searched. On curves the search is the recorded one, of which every arm has the slots alone:
    with other parts it would be told by a name that is not its own, where that was `asked` for. Numbers of a search are not
    looked at: the schedulers of papers are named with theirs."""
    if source.kind != CURVE:
        return {name: arm for name, arm in arms.items() if arm.scheduler != KNOWING}
    recorded = METHODS.get(source.recording.header["method"])
    # It may be of a preset that there is no more; schedulers are compared on whatever was recorded.
    if recorded is None or not asked:
        return arms
    others = [name for name, arm in arms.items() if _search(arm) != _search(recorded)]
    if others:
        sys.stderr.write(
            f"{source.name} (curve): {', '.join(others)} left out: what was recorded is the search of {recorded.name}, and "
            "other parts would never run; compare them in spaces, or live (--live)\n"
        )
    return {name: arm for name, arm in arms.items() if name not in others}


def _search(arm: Method) -> tuple[str, ...]:
    """The parts that a recorded search stands for."""
    return arm.explorer, arm.sampler, arm.cost_model, arm.evaluator


def _key(kind: str, source: Source, arm: str, seed: int, budget: str, version: str) -> Key:
    return Key(
        kind=kind,
        network=source.content,
        arm=arm,
        seed=seed,
        layout=source.kind,
        budget=budget,
        cpu=str(source.hardware.get("name", "")),
        cores=int(source.recording.header.get("threads", 0)),
        version=version,
    )


def _replay(source: Source, arm: Method, seed: int, trials: int) -> Callable[[Path, Progress], dict[str, Any]]:
    return lambda work, progress: replayed.run_cell(source, arm, seed, trials)


def _asked(probe: Probe, source: Source, seed: int) -> Callable[[Path, Progress], dict[str, Any]]:
    return lambda work, progress: {"probe": probe.ask(source, seed)}


def live_parts(arguments: argparse.Namespace) -> list[Part]:
    """The cells of every network; raises UserMistake."""
    if not arguments.networks or not arguments.methods:
        raise UserMistake("--live needs --networks A.onnx,B.onnx and --methods a,b,c")
    if arguments.seconds is None or not 0 < arguments.seconds < math.inf:
        raise UserMistake("--live needs --seconds, the tuning time of a cell, finite and greater than 0")
    arms = {name: arm_named(name) for name in _words(arguments.methods) or ()}
    for name, arm in arms.items():
        refuse_knowing(arm, f"--methods {name}")
    networks, seeds = all_opened(_words(arguments.networks) or []), seeds_of(arguments.seeds)
    machine, version, seconds = Machine.here(), product_version(PLAYED), arguments.seconds
    limit = f"{seconds:g} s" if arguments.operators == ALL else f"{seconds:g} s, {arguments.operators}"

    def part(network: Network, name: str, arm: Method, seed: int) -> Part:
        budget = f"{limit} of {_digest(arm)}"
        key = Key(KIND, network.sha256, name, seed, LIVE, budget, machine.cpu, machine.cores, version)

        def run(work: Path, progress: Progress) -> dict[str, Any]:
            return live.run_cell(network, machine, arm, seed, seconds, arguments.operators, work, progress)

        return Part(network.name, key, seconds + OVERHEAD, run)

    # Seeds outermost: a first answer on everything comes soonest.
    return [part(network, name, arm, seed) for seed in seeds for network in networks for name, arm in arms.items()]


def clocks(arguments: argparse.Namespace, cells: Cells) -> list[Clock]:
    """Those that the live cells of every network lack."""
    machine, version = Machine.here(), product_version(PLAYED)
    networks = all_opened(_words(arguments.networks) or [])
    found = [Clock(network, machine, version, cells, KIND) for network in networks]
    return [clock for clock in found if clock.missing]


def _known(names: Sequence[str]) -> dict[str, Method]:
    """The default arms whose parts this product has."""
    found = {}
    for name in names:
        try:
            found[name] = arm_named(name)
        except UserMistake as mistake:
            sys.stderr.write(f"left out: {mistake}\n")
    return found


def _words(text: str | None) -> list[str] | None:
    return [word for word in text.split(",") if word] if text else None


def _digest(arm: Method) -> str:
    return hashlib.sha256(arm.definition.encode()).hexdigest()[:8]
