"""The TVM backend on this machine, for tests on networks that compile in milliseconds."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests import zoo
from workers.engine.machine import Machine
from workers.engine.methods import method
from workers.messages.spec import RunSpec
from workers.networks.check import load
from workers.networks.clean import cleaned
from workers.networks.inspect import inspect_model
from workers.sandbox.lock import MeasureLock

THREADS = 2
DEFINED = re.compile(r"^define [^\n]*@__tvm_ffi_(\w+)\((.*?)^}", re.MULTILINE | re.DOTALL)

# Before TVM makes its thread pool in the tests' own process.
os.environ.setdefault("TVM_NUM_THREADS", str(THREADS))
os.environ.setdefault("TVM_BIND_THREADS", "0")
os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "2000")  # others time kernels on the same cores


@cache
def target() -> dict[str, Any]:
    from workers.tvm_backend import runtime

    runtime.load()
    from workers.tvm_backend.hardware import detect

    return {**detect().target, "num-cores": THREADS}


def spec_of(network: Path, **fields: Any) -> RunSpec:
    inputs = {port.name: [int(n) for n in port.shape or ()] for port in inspect_model(load(str(network))).inputs}
    return RunSpec(str(network), target(), THREADS, 1e11, 1e10, inputs=inputs, **fields)


def local_backend(
    network: Path, work_dir: Path, report: Callable[[str, str], None] = lambda phase, text: None, **fields: Any
) -> Any:
    """A started LocalBackend with a lock of its own, `fields` of its spec; close it."""
    target()
    from workers.tvm_backend.pool import Pool

    spec = spec_of(network, **fields)
    work_dir.mkdir(parents=True, exist_ok=True)
    return backend_over(Pool(spec.target, THREADS, lock_in(work_dir)), spec, work_dir, report)


def backend_over(
    pool: Any,
    spec: RunSpec,
    work_dir: Path,
    report: Callable[[str, str], None] = lambda phase, text: None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Any:
    """A started LocalBackend that measures in `pool`; close it."""
    from workers.tvm_backend.backend import LocalBackend

    return LocalBackend(
        pool,
        spec,
        cleaned(spec.network, spec.inputs),
        method("auto").evaluation,
        Machine(cores=THREADS),
        work_dir,
        report,
        meanwhile,
    )


def lock_in(work_dir: Path) -> MeasureLock:
    return MeasureLock(work_dir / "lock" / "measure.lock")


def mixed(cache: Path) -> Path:
    """Two convolutions, Concat, average pooling, Gemm and Softmax on 1 x 8 x 12 x 12."""
    return zoo._cached(cache, "mixed", lambda: zoo._bytes(_mixed()))


def _mixed() -> onnx.ModelProto:
    random = np.random.default_rng(zoo.SEED)
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["x", "w1"], ["b"]),
        helper.make_node("Relu", ["b"], ["r"]),
        helper.make_node("Concat", ["a", "r"], ["c"], axis=1),
        helper.make_node("AveragePool", ["c"], ["p"], kernel_shape=[3, 3], strides=[3, 3]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "d"], ["g"], transB=1),
        helper.make_node("Softmax", ["g"], ["y"], axis=1),
    ]
    weights = [
        zoo._normal(random, "w0", 16, 8, 3, 3),
        zoo._normal(random, "w1", 12, 8, 1, 1),
        zoo._normal(random, "v", 10, 28 * 16),
        zoo._normal(random, "d", 10),
    ]
    return zoo.model_of(nodes, {"x": [1, 8, 12, 12]}, {"y": [1, 10]}, weights)


def reference(model: onnx.ModelProto | Path, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """ONNX Runtime's answer."""
    from workers.baselines.session import OnnxRuntimeSession

    content = model.read_bytes() if isinstance(model, Path) else model.SerializeToString()
    return next(iter(OnnxRuntimeSession(content, threads=1, exact=True).run({"x": x}).values()))


def code(module: Any, language: str = "asm") -> str:
    """What LLVM makes of a built module, in all of its parts."""
    import tvm

    inner = module if isinstance(module, tvm.runtime.Module) else module.mod
    own = inner.inspect_source(language) if inner.kind == "llvm" else ""
    return own + "".join(code(part, language) for part in inner.imports)


def checks(library: Any) -> dict[str, bool]:
    """Of the processor's programs in a compiled network, by name, whether they check what they are given."""
    return {name: "raised" in body for name, body in DEFINED.findall(code(library, "ll"))}
