"""What a child can be asked to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workers.child.tasks import TASKS, task_named


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_there(name: str) -> None:
    assert callable(task_named(name))


@pytest.mark.parametrize(
    ("name", "spared"),
    [("hardware", "onnx"), ("inspect", "workers.tvm_backend"), ("baseline", "workers.child.artifact")],
)
def test_a_task_loads_no_more_than_it_needs(name: str, spared: str) -> None:
    code = f"import sys; from workers.child.tasks import task_named; task_named({name!r}); assert {spared!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
