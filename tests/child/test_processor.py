"""What was begun on a machine of another processor, as where a site was moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tvm_backend.local import THREADS, target
from workers.child.artifact import compile_artifact
from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.child.tasks import Task
from workers.child.tune import tune
from workers.messages.channel import ControlReader
from workers.messages.cores import usable_cores
from workers.messages.spec import RunSpec

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize("task", [tune, compile_artifact])
def test_an_older_run_neither_goes_on_nor_compiles_on_another_processor(task: Task, tmp_path: Path) -> None:
    from workers.tvm_backend.hardware import OtherProcessor

    spec = RunSpec("moved.onnx", {**target(), "mcpu": "x86-64"}, THREADS, 1e11, 1e10).to_json()
    pulse = Pulse(lambda event: None, RunClock(0.0))
    try:
        with pytest.raises(OtherProcessor, match=f"x86-64.* than this machine's .*{target()['mcpu']}"):
            task({"spec": spec, "work_dir": str(tmp_path), "best": {}, "device": None}, ControlReader(), pulse)
    finally:
        pulse.close()


@pytest.mark.parametrize(
    ("changed", "same"), [({"num-cores": 64}, True), ({"mcpu": "x86-64"}, False), ({"mattr": ["+avx512bf16"]}, False)]
)
def test_a_processor_is_its_name_and_instructions_not_its_cores(changed: dict[str, Any], same: bool) -> None:
    asked = {**target(), **changed}
    from workers.tvm_backend.hardware import OtherProcessor, check_processor

    if same:
        check_processor(asked)
        return
    with pytest.raises(OtherProcessor):
        check_processor(asked)


@pytest.mark.parametrize("began", [True, False])
def test_a_run_begins_and_goes_on_with_as_many_cores_only(began: bool, tmp_path: Path) -> None:
    """Kernels that share cores take another machine's times."""
    from workers.tvm_backend.hardware import FewerCores

    cores = usable_cores()
    spec = RunSpec(str(tmp_path / "gone.onnx"), target(), cores + 1, 1e11, 1e10).to_json()
    order = {"spec": spec, "work_dir": str(tmp_path), "device": None, "operators": [("key", "")] * began}
    pulse = Pulse(lambda event: None, RunClock(0.0))
    try:
        with pytest.raises(FewerCores, match=f"of {cores + 1} threads, and {cores} cores may be used now"):
            tune(order, ControlReader(), pulse)
    finally:
        pulse.close()
