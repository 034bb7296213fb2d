"""The best so far as a library: compiled, run against ONNX Runtime in a process of its own, measured, and packed.

What is verified is what is shipped: the library is run by the archive's own run script.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.baselines.order import Latency
from workers.baselines.verify import Verdict
from workers.child.archive import describe, pack
from workers.child.hardware import asked
from workers.child.mending import mended
from workers.child.network import PATIENCE, configurations, import_cleaned
from workers.child.peers import half_range, in_turns, library, onnxruntime, tell_baseline, undisturbed
from workers.child.pulse import Pulse
from workers.child.rehearsal import rehearsed
from workers.child.turn import TurnLock
from workers.child.verification import verified
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.channel import ControlReader
from workers.messages.spec import RunSpec

if TYPE_CHECKING:
    from workers.tvm_backend.library import Network, Timed


def compile_artifact(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order of `messages.orders.compile_order`.

    Tells `baseline` and `end_to_end` events and a result {passed, verdict, latency, onnxruntime, ratio, archive}; `archive` is
    null when the outputs differ: what is wrong is never offered. On a device elsewhere there may be no ONNX Runtime to be
    compared with: then it is null, and so is the ratio.
    """
    pulse.patience = PATIENCE
    spec, work = RunSpec.from_json(order["spec"]), Path(order["work_dir"])
    folder = work / "artifact"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    device = order["device"]
    hardware = _same(spec, order["machine"]) if device else None  # before: one that is gone is said at once
    pulse.tell("phase", name="compiling", text="compiling the network with the best configurations")
    rehearsal = _build(order, spec, folder, pulse, hardware)
    lock = TurnLock(pulse)
    if device:
        verdict, ours, theirs = _on_device(device, spec, folder, work, pulse)
    else:
        verdict = _verified(spec, folder, work, pulse)
        if not verdict.passed:
            pulse.tell("phase", name="compiling", text="looking for the operators that compute something else")
            rehearsal = _build(order, spec, folder, pulse, mending=True)
            verdict = _verified(spec, folder, work, pulse)
        ours, theirs = _timed(spec, folder, work, lock)
    archive = None
    if verdict.passed:  # before anything is told of it: a library that is never packed has no place on a chart
        pulse.tell("phase", name="packing", text="packing the archive")
        with lock.shared():
            archive = pack(order, folder, work, ours, theirs, verdict)
        pulse.tell("log", level="info", text=f"the library is ready: {verdict.sentence}")
    else:
        pulse.tell("log", level="warning", text=f"the library is not offered: {verdict.reason}")
    if theirs is not None and verdict.passed:  # else it would be beside an earlier library, of other moments
        tell_baseline(pulse, spec, ONNX_RUNTIME, theirs)
    pulse.tell(
        "end_to_end",
        seconds=ours.median,
        spread=half_range(ours),
        runs=ours.runs,
        latency=order["latency"],
        verified=verdict.passed,
        error=verdict.reason,
    )
    pulse.tell(
        "result",
        task="compile",
        passed=verdict.passed,
        verdict=verdict.to_json(),
        latency=asdict(ours),
        onnxruntime=theirs and asdict(theirs),
        ratio=theirs and ours.median / theirs.median,
        rehearsal=rehearsal,
        archive=archive and str(archive),
    )


def _same(spec: RunSpec, name: str) -> dict[str, Any]:
    """The device's hardware; raises DeviceRefused as `check_same` does."""
    from workers.tvm_backend.remote.sameness import check_same

    hardware: dict[str, Any] = asked(peak=False)["hardware"]
    check_same(hardware, spec.target, spec.threads, name)
    return hardware


def _verified(spec: RunSpec, folder: Path, work: Path, pulse: Pulse) -> Verdict:
    pulse.tell("phase", name="verifying", text="running the library against ONNX Runtime")
    return verified(spec, folder, work, turn=TurnLock(pulse).shared)


def _on_device(
    device: str, spec: RunSpec, folder: Path, work: Path, pulse: Pulse
) -> tuple[Verdict, Latency, Latency | None]:
    from workers.child.elsewhere import elsewhere

    def say(text: str) -> None:
        pulse.tell("log", level="warning", text=text)

    def tell(text: str) -> None:
        pulse.tell("phase", name="verifying", text=f"{text} ({device})")

    tell("running the library on the device against ONNX Runtime here")
    with elsewhere(folder, say, tell) as there:
        # Not while the device is waited for: who tunes for it holds that, and waits for this machine's lock.
        verdict = verified(spec, folder, work, there.outputs, TurnLock(pulse).shared)
        return verdict, *there.timed(spec, say)


def _build(
    order: dict[str, Any],
    spec: RunSpec,
    folder: Path,
    pulse: Pulse,
    hardware: dict[str, Any] | None = None,
    mending: bool = False,
) -> dict[str, Any] | None:
    """Writes model.so, the MetaSchedule database, metadata.json and run.py, of right configurations alone where `mending`;
    returns what the rehearsal found. `hardware` is that of a device elsewhere."""
    from workers.messages.cores import threads_here
    from workers.tvm_backend import runtime

    # What is timed here runs on as many as it was tuned for, whatever the site may use by now.
    os.environ.update(runtime.environment(threads_here(spec.threads) if hardware else spec.threads))
    runtime.load(spec.target)
    import tvm

    from workers.tvm_backend.hardware import check_processor
    from workers.tvm_backend.library import Network
    from workers.tvm_backend.linking import check_tools, export_library

    if hardware is None:
        check_processor(spec.target)
    target = tvm.target.Target(spec.target)
    check_tools(target)
    cores, lock = runtime.spread_threads(), TurnLock(pulse)
    with lock.shared():
        imported, inspection = import_cleaned(spec, target, order["layout"])
        network = Network.of(imported, target)
        best = configurations(order["best"], network, spec)
    log = Path(order["log"])
    if mending:
        chosen = _mended(network, best, log, lock, pulse)
        with lock.shared():
            built, rehearsal = network.compiled(chosen), None
    elif hardware:  # operators cannot be timed in the network from here
        with lock.shared():
            chosen, built, rehearsal = best, network.compiled(best), None
    else:
        tuned, latency = order["clock"], order["latency"]
        chosen, built, rehearsal = rehearsed(network, best, log, tuned, latency, inspection, cores, pulse)
    with lock.shared():
        network.database(chosen, folder)
        export_library(built, folder / "model.so", target)
        told = rehearsal.to_json() if rehearsal else None
        shipped = {str(index): _shipped(order, index, found) for index, found in chosen.items()}
        describe(order["name"], spec, imported.layout, folder, inspection, shipped, told, hardware)
    return told


def _mended(network: Network, best: Mapping[int, Timed], log: Path, lock: TurnLock, pulse: Pulse) -> dict[int, Timed]:
    """Says which it replaced."""

    def say(name: str) -> None:
        pulse.tell("phase", name="compiling", text=f"comparing {name} with its plain loops")

    chosen, wrong = mended(network, best, log, say, lock.shared)
    found = f"operators with another configuration, since the fastest is wrong: {', '.join(wrong)}"
    if not wrong:
        found = "every operator computes what it should, so that the network as TVM imported it does not"
    pulse.tell("log", level="warning", text=f"{found}; the library is verified again")
    return chosen


def _shipped(order: dict[str, Any], index: int, configuration: Timed) -> dict[str, Any]:
    sketch, choices, seconds = configuration
    told = {name: order["best"][str(index)].get(name, "") for name in ("key", "space")}
    return {**told, "sketch": sketch, "choices": choices, "seconds": seconds}


def _timed(spec: RunSpec, folder: Path, work: Path, lock: TurnLock) -> tuple[Latency, Latency]:
    """In turns with ONNX Runtime, whose latency is the second; others measure between any two."""
    with ExitStack() as held:
        with lock.exclusive():
            theirs = held.enter_context(onnxruntime(spec, work))
        with lock.exclusive():
            ours = held.enter_context(library(spec, folder))
        pairs = list(in_turns(ours, theirs, lock))
    return undisturbed([pair[0] for pair in pairs]), undisturbed([pair[1] for pair in pairs])
