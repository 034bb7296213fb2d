"""What a network takes without us: under ONNX Runtime, and under TVM before any tuning."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from workers.baselines.order import Latency
from workers.child.artifact import PATIENCE, describe, import_cleaned
from workers.child.peers import onnxruntime, run_script, tell_baseline
from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.messages.baselines import ONNX_RUNTIME, UNTUNED
from workers.messages.channel import ControlReader
from workers.messages.spec import RunSpec
from workers.networks.inspect import Inspection

RUNS, UNTUNED_RUNS = 60, 5


def measure_baselines(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {spec, name, work_dir}. Tells two `baseline` events and an empty result."""
    spec, work = RunSpec.from_json(order["spec"]), Path(order["work_dir"])
    pulse.patience, lock = PATIENCE, TurnLock(pulse)
    pulse.tell("phase", name="baseline", text="measuring ONNX Runtime")
    with lock.exclusive():
        seconds = onnxruntime(spec, work, RUNS)["seconds"]
    tell_baseline(pulse, spec, ONNX_RUNTIME, Latency.of(np.asarray(seconds)))
    pulse.tell("phase", name="baseline", text="compiling the network untuned")
    folder = work / "untuned"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with lock.shared():
        layout, network = _untuned(spec, folder)
        describe(order, spec, layout, folder, network)
    with lock.exclusive():
        seconds = run_script(spec, folder, "--runs", str(UNTUNED_RUNS), "--json")["seconds"]
    tell_baseline(pulse, spec, UNTUNED, Latency.of(np.asarray(seconds)))
    pulse.tell("result", task="baseline")


def _untuned(spec: RunSpec, folder: Path) -> tuple[str, Inspection]:
    from workers.tvm_backend import runtime

    runtime.load(spec.target)
    import tvm

    from workers.tvm_backend.library import compile_network, export

    target = tvm.target.Target(spec.target)
    imported, network = import_cleaned(spec, target, spec.layout, None)
    export(compile_network(imported, None, target), folder / "model.so")
    return imported.layout, network
