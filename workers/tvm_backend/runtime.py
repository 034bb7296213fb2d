"""Importing TVM without its traps; call `load` before anything else of tvm is imported."""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import platform
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from workers.messages.cores import apart
from workers.without import without

INTRINSICS = "tvm.s_tir.tensor_intrin"
AUTOLOAD = "TVM_DEVICE_BACKEND_AUTOLOAD"
"""TVM's own switch for the backends that it brings."""


def load(target: dict[str, Any] | None = None) -> None:
    """Imports TVM and, of its tensor intrinsics and backends, only what is the target's (this processor's unless told
    otherwise), in half of the time that TVM takes as it comes.

    `tvm.s_tir.tensor_intrin` parses CUDA's, ROCm's and Hexagon's intrinsics on import, which takes 19 s; a package object
    without that import, whose parts load one by one, takes 0.1 s.
    """
    part = f"{INTRINSICS}.{intrinsics_of(target or {'kind': 'llvm'})}"
    if part not in sys.modules:
        with _kept(), _without_frames():
            _import()
            importlib.import_module(part)
    if target and target["kind"] == "cuda":
        load_cuda()
        from workers.tvm_backend.nvrtc import install

        install(target["arch"])


def load_cuda() -> None:
    """After `load`, what finds and runs NVIDIA's GPUs; starts nothing on them."""
    with _kept(), without("torch"):
        import tvm.backend

        tvm.backend.load("cuda")


def _import() -> None:
    """torch, which tvm_ffi takes along for tensors nobody hands it, is 2 s and 190 MB of every process; of Disco, and of the
    nine backends of other processors, the Python halves look for what is not there, and TVM's first error in a process
    reads the symbols of all its libraries: with them a process took twice as long to begin."""
    before = os.environ.get(AUTOLOAD)
    os.environ[AUTOLOAD] = "0"
    try:
        with without("torch", "tvm.runtime.disco"):
            import tvm.s_tir
    finally:
        if before is None:
            del os.environ[AUTOLOAD]
        else:
            os.environ[AUTOLOAD] = before
    from tvm.libinfo import package_lib_paths
    from tvm_ffi.libinfo import load_lib_ctypes

    # Random numbers and sorting, which came with the backends.
    load_lib_ctypes("tvm", "tvm_runtime_extra", "RTLD_LOCAL", extra_lib_paths=package_lib_paths())
    if INTRINSICS not in sys.modules:
        package = types.ModuleType(INTRINSICS)
        package.__path__ = [os.path.join(os.path.dirname(tvm.s_tir.__file__), "tensor_intrin")]
        sys.modules[INTRINSICS] = package


@contextmanager
def _without_frames() -> Iterator[None]:
    """TVM's parser asks in which frames each intrinsic is defined, for those of a class, which none is; to answer, Python
    looks through all modules: 0.3 s."""
    stack = inspect.stack
    inspect.stack = lambda context=1: []
    try:
        yield
    finally:
        inspect.stack = stack


@contextmanager
def _kept() -> Iterator[None]:
    """What is imported inside stays for good: looking through it for garbage, meanwhile and when the process ends, took a
    third of a process that only loads TVM."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def intrinsics_of(target: dict[str, Any]) -> str:
    """The module of tensor intrinsics that a target's schedule rules name: those of a GPU's processor, for its own rules here
    name none, and they take 19 s."""
    host = target.get("host", target)
    triple = str(host.get("mtriple") or platform.machine())
    return "arm_cpu" if triple.startswith(("aarch64", "arm")) else "x86"


BIG_CORES = 1
"""A mode of `config_threadpool`; with a number of threads so many are used, on whatever cores."""


def pool_variables(threads: int) -> dict[str, str]:
    """Variables of every process that runs kernels.

    Without TVM_NUM_THREADS TVM takes half of the x86 cores. Binding is off because spawned processes inherit the affinity.
    """
    return {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0"}


def environment(threads: int) -> dict[str, str]:
    """Variables of every process that times kernels in turns with others.

    OMP_NUM_THREADS=1, meant for xgboost, would make kernels serial unless TVM_NUM_THREADS is there. A pool's thread
    spins for its next task, 300,000 yields unless told otherwise, which is 0.2 s on the core where the next process is
    timed by then: most kernels looked 1.8 times as slow. 2,000 are enough from one call to the next.
    """
    return {**pool_variables(threads), "OMP_NUM_THREADS": "1", "TVM_THREAD_POOL_SPIN_COUNT": "2000"}


def spread_threads() -> list[int]:
    """Makes TVM's thread pool, gives each of its threads a core of its own, and returns the cores, the caller's first.

    Left alone, Linux wakes the pool's thread on the core of the thread that called it and takes tens of milliseconds to
    part them: kernels timed after a pause look twice as slow. TVM's own binding counts cores from 0, whatever this
    process may use. The caller stays free until `on_core` holds it.
    """
    import tvm

    before, cores = set(os.listdir("/proc/self/task")), apart(os.sched_getaffinity(0))
    # By itself the pool uses no more threads than there are processors of the highest frequency where some are slower.
    every = int(os.environ.get("TVM_NUM_THREADS", len(cores)))
    tvm.get_global_func("runtime.config_threadpool")(BIG_CORES, every)
    made = sorted(int(task) for task in set(os.listdir("/proc/self/task")) - before)
    for place, thread in enumerate(made, start=1):
        os.sched_setaffinity(thread, {cores[place % len(cores)]})
    return cores


@contextmanager
def on_core(cores: Sequence[int]) -> Iterator[None]:
    """Keeps the calling thread on the first of `cores` while it times kernels; afterwards it may run on all."""
    os.sched_setaffinity(0, {cores[0]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


LOADING = ("apache-tvm", "apache-tvm-ffi")
"""What decides whether a library loads."""
DECIDING = (*LOADING, "onnx", "xgboost-cpu", "emcee", "numpy")


def versions(packages: Sequence[str] = DECIDING) -> dict[str, str]:
    """Versions that decide what a compiled library is, and those of LOADING whether it loads."""
    return {name: _version(name) for name in packages}


@cache
def _version(package: str) -> str:
    """Looked up once: 1 ms of files for each, and every operator asks."""
    from importlib.metadata import version

    return version(package)
