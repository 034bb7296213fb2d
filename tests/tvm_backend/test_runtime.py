"""What comes along when TVM is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.tvm

LOADED = "import sys; from workers.tvm_backend import runtime; runtime.load(); "


def told(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def test_tvm_comes_without_torch_and_torch_may_come_afterwards() -> None:
    assert told(LOADED + "print('torch' in sys.modules)") == "False"
    assert told(LOADED + "import torch, tvm; print(float(torch.ones(3).sum()))") == "3.0"


def test_tvm_s_modules_are_never_looked_through_for_garbage() -> None:
    count = "import gc; print(gc.isenabled(), gc.get_freeze_count() > 50_000 + 9 * len(gc.get_objects()))"
    assert told(LOADED + count) == "True True"
    assert told(f"import gc; gc.disable(); {LOADED}print(gc.isenabled())") == "False"


def test_of_tvm_s_backends_only_the_target_s_comes() -> None:
    which = "print(*('tvm.backend.' + name in sys.modules for name in ('cuda.tile_primitive', 'metal', 'trn')))"
    assert told(LOADED + which) == "False False False"
    assert told(LOADED + "runtime.load_cuda(); " + which) == "True False False"
    assert told("import os; " + LOADED + "print(runtime.AUTOLOAD in os.environ)") == "False"


def test_what_came_with_the_backends_is_there() -> None:
    """Random numbers for measuring, and what networks sort by."""
    wanted = "('tvm.contrib.random.random_fill_for_measure', 'tvm.contrib.sort.topk')"
    assert (
        told(LOADED + f"import tvm; print(*(tvm.get_global_func(name, True) is None for name in {wanted}))")
        == "False False"
    )


@pytest.mark.mutation
def test_tvm_before_its_traps_are_dealt_with_brings_torch() -> None:
    assert told("import tvm; " + LOADED + "print('torch' in sys.modules)") == "True"


@pytest.mark.parametrize(
    "module",
    [
        "workers.tvm_backend.worker",
        "workers.tvm_backend.remote.pool",
        "workers.child.tune",
        "workers.child.artifact",
        "workers.child.baseline",
        "workers.headless.tune",
        "workers.headless.landscape",
        "workers.benchmarks.latency",
        "workers.benchmarks.methods.command",
        "workers.benchmarks.speed",
        "workers.benchmarks.torch_peer",
    ],
)
def test_what_starts_often_brings_nothing_heavy(module: str) -> None:
    """Nor TVM before its traps are dealt with."""
    heavy = "{'tvm', 'torch', 'xgboost', 'sklearn', 'scipy', 'pandas', 'onnxruntime'} & set(sys.modules)"
    assert told(f"import sys, {module}; print(sorted({heavy}))") == "[]"
