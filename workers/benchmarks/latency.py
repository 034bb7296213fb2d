"""`benchmark latency`: what tuning for some minutes reaches, in turns with ONNX Runtime and PyTorch."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

from workers.baselines.session import WARM_UP
from workers.benchmarks import ours
from workers.benchmarks.cells import DONE, FAILED, VOID, Cell, Cells, Key, is_open
from workers.benchmarks.identity import TUNING, product_version
from workers.benchmarks.latency_table import table
from workers.benchmarks.machine import Machine, Network, all_opened
from workers.benchmarks.process import PartFailed, environment, result_of
from workers.benchmarks.progress import Progress
from workers.benchmarks.turns import ONNX_RUNTIME, OURS, Block, in_turns, pair, verified
from workers.engine.methods import METHODS
from workers.headless.errors import UserMistake
from workers.messages.spec import RunSpec
from workers.sandbox.lock import MeasureLock

KIND = "latency"
TURNS, RUNS = 5, 40
FINALS = 30.0  # s for the turns
OVERHEAD = 180.0  # s beside the tuning
EAGER, COMPILED = "PyTorch", "torch.compile"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("networks", nargs="*", metavar="NETWORK.onnx")
    parser.add_argument("--out", required=True, help="directory of the cells; a second run goes on where one ended")
    parser.add_argument("--minutes", type=float, default=10.0, help="of tuning for each network")
    parser.add_argument("--trials", type=int, default=None, help="instead of --minutes")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--torch", action="append", default=[], metavar="NAME=FILE.py:FUNCTION",
        help="the function that makes the PyTorch module NAME.onnx was exported from; runs its code",
    )  # fmt: skip
    parser.add_argument("--again-void", action="store_true", help="run cells again that ended without counting")
    parser.add_argument("--table", action="store_true", help="run nothing, print what is there")


def run(arguments: argparse.Namespace) -> int:
    """0 when every cell is there, 1 when some broke off."""
    out = Path(arguments.out).resolve()
    cells = Cells(out / "cells")
    broken = 0 if arguments.table else _fill(arguments, cells, out)
    found = cells.all(KIND)
    if not found:
        raise UserMistake(f"--out {out} holds no cells yet; name networks to fill them")
    sys.stdout.write(table(found))
    return min(1, broken)


def _fill(arguments: argparse.Namespace, cells: Cells, out: Path) -> int:
    networks, factories = _checked(arguments)
    machine = Machine.here()
    missing = []
    for network in networks:
        key = _key(network, arguments, machine)
        found = cells.find(key, network.name)
        wanted = factories.get(network.name)
        stale = found is not None and wanted and found["torch"]["factory"] != wanted
        if is_open(found, arguments.again_void) or stale:
            missing.append((network, key))
    if len(missing) < len(networks):
        sys.stderr.write(f"{len(networks) - len(missing)} of {len(networks)} cells are there already\n")
    amount = ours.Amount(arguments.minutes, arguments.trials)
    progress = Progress([amount.seconds + OVERHEAD] * len(missing))
    broken = 0
    for network, key in missing:
        progress.begin(network.name)
        work = out / "work" / key.digest
        spec = machine.spec(network, arguments.method, arguments.seed)
        cell = _cell(spec, amount, factories.get(network.name), work, progress)
        cells.keep(key, network.name, cell)
        if cell["state"] == FAILED:
            broken += 1
        else:
            shutil.rmtree(work, ignore_errors=True)
        progress.end(cell["reason"] or "done")
    return broken


def _checked(arguments: argparse.Namespace) -> tuple[list[Network], dict[str, str]]:
    if not arguments.networks:
        raise UserMistake("name one or more ONNX files, or --table for what is there")
    if arguments.method not in METHODS:
        raise UserMistake(f"--method {arguments.method}: unknown; there are {', '.join(METHODS)}")
    amounts = (arguments.minutes, 1 if arguments.trials is None else arguments.trials)
    if arguments.seed < 0 or not all(amount > 0 for amount in amounts):
        raise UserMistake("--seed must be 0 or more, --minutes and --trials greater than 0")
    networks = all_opened(arguments.networks)
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
        version=product_version(TUNING),
    )


def _cell(spec: RunSpec, amount: ours.Amount, factory: str | None, work: Path, progress: Progress) -> Cell:
    work.mkdir(parents=True, exist_ok=True)
    try:
        return _measured(spec, _tuned(spec, amount, work, progress), factory, work, progress)
    except ours.Incomplete as incomplete:
        return {"state": VOID, "reason": str(incomplete), "torch": {"factory": factory}}
    except Exception as failure:  # other networks are still to come
        (work / "failure").write_text(traceback.format_exc())
        return {"state": FAILED, "reason": f"{str(failure)[-600:] or type(failure).__name__} (see {work})"}


def _tuned(spec: RunSpec, amount: ours.Amount, work: Path, progress: Progress) -> dict[str, Any]:
    """A tuning that ended before its cell did is not repeated."""
    kept = work / "tuning.json"
    if kept.is_file() and (work / "library" / "model.so").is_file():
        return dict(json.loads(kept.read_text()))
    tuning = ours.tuned(spec, amount, work, progress.show, progress.tick)
    partial = work / "tuning.partial"
    partial.write_text(json.dumps(tuning))
    partial.replace(kept)
    return tuning


def _measured(spec: RunSpec, tuning: dict[str, Any], factory: str | None, work: Path, progress: Progress) -> Cell:
    notes: dict[str, Any] = {}
    with MeasureLock().exclusive():
        progress.show("verifying", FINALS)
        wrong = verified(spec, work / "library", work)
        libraries = pair(spec, work / "library", work)
        if factory is not None:
            libraries |= _torch(spec, factory, work, notes, progress)
        turns = in_turns(libraries, TURNS, RUNS, lambda text: progress.show(text, FINALS))
    for name in (OURS, ONNX_RUNTIME):
        if name in turns.errors:
            raise PartFailed(f"{name}: {turns.errors[name]}")
    return {
        "state": VOID if wrong else DONE,
        "reason": f"it computes something else than ONNX Runtime: {wrong}" if wrong else "",
        "tuning": tuning,
        "torch": {"factory": factory, **notes},
        **turns.to_json(),
    }


def _torch(spec: RunSpec, factory: str, work: Path, notes: dict[str, Any], progress: Progress) -> dict[str, Block]:
    """Eager and compiled: what torch.compile made is kept between its processes, it takes a minute the first time."""
    env = environment(spec.threads, work) | {
        "OMP_NUM_THREADS": str(spec.threads),
        "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"),
    }
    order = {
        "factory": factory,
        "threads": spec.threads,
        "warm_up": WARM_UP,
        "reference": str(work / "references" / "reference-0.npz"),
    }

    def block(name: str) -> Block:
        def timed(runs: int) -> list[float]:
            wanted = {**order, "compiled": name == COMPILED, "runs": runs}
            log = work / f"{name}.log"
            found = result_of("workers.benchmarks.torch_peer", wanted, env, log, lambda event: None, progress.tick)
            notes.update(difference=found["difference"], version=found["version"])
            return list(found["seconds"])

        return timed

    return {EAGER: block(EAGER), COMPILED: block(COMPILED)}
