"""Importing TVM without its traps; call `load` before anything else of tvm is imported."""

from __future__ import annotations

import importlib
import os
import sys
import types
from typing import Any

INTRINSICS = "tvm.s_tir.tensor_intrin"


def load(target: dict[str, Any] | None = None) -> None:
    """Imports TVM and, of its tensor intrinsics, only the target's part.

    `tvm.s_tir.tensor_intrin` parses CUDA's, ROCm's and Hexagon's intrinsics on import, which takes 19 s; a package object
    without that import, whose parts load one by one, takes 0.2 s.
    """
    import tvm.s_tir

    if INTRINSICS not in sys.modules:
        package = types.ModuleType(INTRINSICS)
        package.__path__ = [os.path.join(os.path.dirname(tvm.s_tir.__file__), "tensor_intrin")]
        sys.modules[INTRINSICS] = package
    importlib.import_module(f"{INTRINSICS}.{intrinsics_of(target or {'kind': 'llvm'})}")


def intrinsics_of(target: dict[str, Any]) -> str:
    """The module of tensor intrinsics that a target's schedule rules name."""
    if target["kind"] == "cuda":
        return "cuda"
    triple = str(target.get("mtriple", ""))
    return "arm_cpu" if triple.startswith(("aarch64", "arm")) else "x86"


def environment(threads: int) -> dict[str, str]:
    """Variables of every process that runs kernels.

    Without TVM_NUM_THREADS TVM takes half of the x86 cores; OMP_NUM_THREADS=1, meant for xgboost, would make kernels
    serial unless TVM_NUM_THREADS is there. Binding is off because spawned processes inherit the affinity.
    """
    return {"TVM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1", "TVM_BIND_THREADS": "0"}


def versions() -> dict[str, str]:
    """Versions that decide what a compiled library is and whether it loads."""
    from importlib.metadata import version

    return {name: version(name) for name in ("apache-tvm", "apache-tvm-ffi", "onnx", "xgboost-cpu", "emcee", "numpy")}
