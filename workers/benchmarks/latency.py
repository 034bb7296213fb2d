"""`benchmark latency`: what tuning for some minutes reaches, in turns with ONNX Runtime and PyTorch."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from workers.baselines.order import WARM_UP
from workers.benchmarks import ours
from workers.benchmarks.cells import Cell, Cells, Key, is_open
from workers.benchmarks.filling import add_cell_arguments, fill, filled, missing, named_networks, tuned_once, verdict
from workers.benchmarks.identity import TUNED, product_version
from workers.benchmarks.latency_table import table
from workers.benchmarks.machine import Machine, Network, all_opened
from workers.benchmarks.process import PartFailed, environment, result_of
from workers.benchmarks.progress import Progress
from workers.benchmarks.turns import FINALS, OURS, in_turns, pair
from workers.child.peers import RUNS, TURN, Peer
from workers.child.verification import verified
from workers.engine.methods import METHODS
from workers.headless.arguments import out_directory
from workers.headless.errors import UserMistake
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.spec import RunSpec
from workers.sandbox.lock import MeasureLock

KIND = "latency"
OVERHEAD = 180.0  # s beside the tuning
EAGER, COMPILED = "PyTorch", "torch.compile"


@dataclass(frozen=True)
class Part:
    """One cell to be filled; `factory` makes the PyTorch module of the network, where it was given."""

    network: Network
    key: Key
    spec: RunSpec
    amount: ours.Amount
    factory: str | None

    @property
    def name(self) -> str:
        return self.network.name

    @property
    def label(self) -> str:
        return self.name

    def is_open(self, cells: Cells, again_void: bool) -> bool:
        """Whether it has to be run: missing, or measured beside another module."""
        found = cells.find(self.key, self.name)
        beside = found and found.get("torch")  # a budget that was too small says nothing of a module
        stale = bool(beside and self.factory and beside["factory"] != self.factory)
        failed = bool(found and self.factory and {EAGER, COMPILED} & found.get("errors", {}).keys())
        return stale or is_open(found, again_void) or (again_void and failed)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cell_arguments(parser)
    parser.add_argument("--minutes", type=float, default=10.0, help="of tuning for each network")
    parser.add_argument("--trials", type=int, default=None, help="instead of --minutes")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--torch", action="append", default=[], metavar="NAME=FILE.py:FUNCTION",
        help="the function that makes the PyTorch module NAME.onnx was exported from; runs its code",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """0 when every cell is there, 1 when some broke off."""
    out = out_directory(arguments.out)
    cells = Cells(out / "cells")
    broken = 0 if arguments.table else _fill(arguments, cells, out)
    sys.stdout.write(table(filled(cells, KIND, out)))
    return min(1, broken)


def _fill(arguments: argparse.Namespace, cells: Cells, out: Path) -> int:
    """Runs what is missing; how many cells broke off."""
    parts = missing(planned(arguments), lambda part: part.is_open(cells, arguments.again_void))
    progress = Progress([part.amount.seconds + OVERHEAD for part in parts])
    return fill(parts, cells, out, progress, _cell, lambda cell: cell["reason"] or "done")


def planned(arguments: argparse.Namespace) -> list[Part]:
    """A cell a network; raises UserMistake."""
    networks, factories = _checked(arguments)
    machine, amount = Machine.here(), ours.Amount(arguments.minutes, arguments.trials)
    return [
        Part(
            network,
            _key(network, arguments, machine),
            machine.spec(network, arguments.method, arguments.seed),
            amount,
            factories.get(network.name),
        )
        for network in networks
    ]


def _checked(arguments: argparse.Namespace) -> tuple[list[Network], dict[str, str]]:
    files = named_networks(arguments)
    if arguments.method not in METHODS:
        raise UserMistake(f"--method {arguments.method}: unknown; there are {', '.join(METHODS)}")
    amounts = (60 * arguments.minutes, 1 if arguments.trials is None else arguments.trials)
    if arguments.seed < 0 or not all(0 < amount < math.inf for amount in amounts):
        raise UserMistake("--seed must be 0 or more, --minutes and --trials finite and greater than 0")
    networks = all_opened(files)
    names = [network.name for network in networks]
    factories: dict[str, str] = {}
    for text in arguments.torch:
        name, separator, factory = text.partition("=")
        if not separator or name not in names or ":" not in factory:
            raise UserMistake(f"--torch {text!r} must be NAME=FILE.py:FUNCTION, NAME one of {', '.join(names)}")
        factories[name] = factory
    return networks, factories


def _key(network: Network, arguments: argparse.Namespace, machine: Machine) -> Key:
    return Key(
        kind=KIND,
        network=network.sha256,
        arm=arguments.method,
        seed=arguments.seed,
        layout="own",
        budget=str(ours.Amount(arguments.minutes, arguments.trials)),
        cpu=machine.cpu,
        cores=machine.cores,
        version=product_version((*TUNED, "workers/benchmarks/torch_peer.py")),
    )


def _cell(part: Part, work: Path, progress: Progress) -> Cell:
    tuning = tuned_once(work, lambda: ours.tuned(part.spec, part.amount, work, progress)[0])
    return _measured(part, tuning, work, progress)


def _measured(part: Part, tuning: dict[str, Any], work: Path, progress: Progress) -> Cell:
    with MeasureLock().exclusive():
        progress.show("verifying", FINALS)
        wrong = verified(part.spec, work / "library", work).reason
        libraries = pair(part.spec, work / "library", work)
        if part.factory is not None:
            libraries |= _torch(part.spec, part.factory, work)
        turns = in_turns(libraries, lambda text: progress.show(text, FINALS))
        for name in (OURS, ONNX_RUNTIME):
            if name in turns.errors:
                raise PartFailed(f"{name}: {turns.errors[name]}")
        progress.show("timing the network and its operators in turns", FINALS)
        operators = _operators(part.spec, work, progress)
    return {
        **verdict(wrong),
        "tuning": tuning,
        "torch": {"factory": part.factory, **turns.notes(EAGER, COMPILED)},
        "operators": operators,
        **turns.to_json(),
    }


def _operators(spec: RunSpec, work: Path, progress: Progress) -> dict[str, Any]:
    """The library in work/library beside the sum of its operators, see `inside.figures`."""
    order = {"spec": spec.to_json(), "folder": str(work / "library")}
    env, log = environment(spec.threads, work), work / "inside.log"
    found = result_of("workers.benchmarks.inside", order, env, log, lambda event: None, progress.tick)
    return dict(found["operators"])


def _torch(spec: RunSpec, factory: str, work: Path) -> dict[str, Callable[[], Peer]]:
    """Eager and compiled, which takes a minute to start."""
    env = environment(spec.threads, work) | {
        "OMP_NUM_THREADS": str(spec.threads),
        "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"),
    }
    order = {
        "factory": factory,
        "threads": spec.threads,
        "warm_up": WARM_UP,
        "runs": RUNS,
        "longest": TURN,
        "reference": str(work / "references" / "reference-0.npz"),
    }
    argv = [sys.executable, "-m", "workers.benchmarks.torch_peer"]
    return {
        name: partial(Peer, name, argv, json.dumps(order | {"compiled": name == COMPILED}), env)
        for name in (EAGER, COMPILED)
    }
