"""What a network takes without us: under ONNX Runtime, and under TVM before any tuning, the import that will be tuned as
plain loops."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from workers.child.archive import describe
from workers.child.network import PATIENCE, import_cleaned
from workers.child.peers import BRIEF, LONG, in_turns, library, onnxruntime, patience, tell_baseline, undisturbed
from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.child.verification import verified
from workers.messages.baselines import ONNX_RUNTIME, UNTUNED
from workers.messages.channel import ControlReader
from workers.messages.spec import RunSpec
from workers.networks.inspect import Inspection

TURNS = 6
"""After the first one of ONNX Runtime alone. A browser that starts beside a single one made it look three times slower than it
is."""
LOOK = 1.0
"""Seconds of the untuned library's turn, after which there is no other: plain loops take a hundred times as long as what they
are compared with, and a run's clock goes on while nobody else can measure."""
WRONG = (
    "even untuned TVM does not compute what ONNX Runtime computes ({}): no library of such a run is offered; "
    "export the network with another opset or without what stands before that output"
)


def measure_baselines(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {spec, name, work_dir, head_start | absent, beside: whether another account's run has the machine | absent}.
    Tells a `baseline` event as soon as ONNX Runtime has run once, again when `head_start` seconds are over, in which a run
    that begins meanwhile has the cores for itself, and both when the turns are over (a later event replaces an earlier one of
    its name), in place of the untuned one an error in the log where TVM computes something else, and an empty result. Others
    measure between any two turns; beside another account's run an answer that is long in coming ends the attempt."""
    spec, work = RunSpec.from_json(order["spec"]), Path(order["work_dir"])
    if order.get("beside"):
        patience.set(BRIEF)
    pulse.patience, lock = PATIENCE, TurnLock(pulse)
    pulse.tell("phase", name="baseline", text="measuring ONNX Runtime")
    with lock.exclusive():
        peer = onnxruntime(spec, work)
    with peer:
        theirs = [peer.seconds(0)]
        tell_baseline(pulse, spec, ONNX_RUNTIME, undisturbed(theirs))
        if head_start := order.get("head_start", 0.0):
            time.sleep(head_start)
            if sum(theirs[0]) <= LONG:
                with lock.exclusive():
                    # A run that loads beside the first one makes it look three times slower.
                    theirs.append(peer.seconds(1))
            tell_baseline(pulse, spec, ONNX_RUNTIME, undisturbed(theirs))
    pulse.tell("phase", name="baseline", text="compiling the network untuned")
    folder = work / "untuned"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with lock.shared():
        layout, network = _untuned(spec, folder)
        describe(order["name"], spec, layout, folder, network)
    verdict = verified(spec, folder, work, turn=lock.shared)
    if verdict.passed:
        pulse.tell("phase", name="baseline", text="measuring ONNX Runtime and the untuned network in turns")
    else:
        pulse.tell("log", level="error", text=WRONG.format(verdict.reason))
    with ExitStack() as held:
        ours = None
        if verdict.passed:
            with lock.shared():  # its first run is timed by nobody
                ours = held.enter_context(library(spec, folder, "--paced"))
        with lock.exclusive():
            peer = held.enter_context(onnxruntime(spec, work))
        pairs = list(in_turns(ours, peer, lock, TURNS, LOOK))
    theirs += [pair[1] for pair in pairs]
    tell_baseline(pulse, spec, ONNX_RUNTIME, undisturbed(theirs))
    if untuned := [pair[0] for pair in pairs if pair[0]]:
        tell_baseline(pulse, spec, UNTUNED, undisturbed(untuned))
    pulse.tell("result", task="baseline")


def _untuned(spec: RunSpec, folder: Path) -> tuple[str, Inspection]:
    from workers.tvm_backend import runtime

    runtime.load(spec.target)
    import tvm

    from workers.tvm_backend.library import compile_network
    from workers.tvm_backend.linking import export_library

    target = tvm.target.Target(spec.target)
    # As it will be tuned: what is verified here is what the run's library begins with; NHWC where that is still to be measured.
    imported, network = import_cleaned(spec, target, spec.layout)
    export_library(compile_network(imported, None, target), folder / "model.so")
    return imported.layout, network
