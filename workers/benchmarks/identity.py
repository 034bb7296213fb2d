"""What is compared with what: the network by its content, the code by its version."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from workers.engine.methods import METHODS
from workers.messages.sources import hashed

ROOT = Path(__file__).resolve().parents[2]
ENGINE = "workers/engine"
_IMPORTING = (
    "importer.py",
    "blocks.py",
    "clips.py",
    "concatenation.py",
    "constants.py",
    "extrema.py",
    "fast_math.py",
    "hardware.py",
    "integers",
    "interleaving.py",
    "layout_free.py",
    "library.py",
    "lowering.py",
    "mutation.py",
    "normalizations.py",
    "parts.py",
    "permutations.py",
    "prepacking.py",
    "reads.py",
    "reductions.py",
    "rereading.py",
    "resizing.py",
    "rows.py",
    "serial.py",
    "slices.py",
    "transpositions.py",
    "unchecked.py",
    "views.py",
    "winograd",
)
IMPORT = (
    "workers/networks",
    "workers/engine/machine.py",
    "workers/messages/cores.py",
    *(f"workers/tvm_backend/{part}" for part in _IMPORTING),
)
FINALS = (
    "workers/baselines",
    "workers/child/peers.py",
    "workers/child/shipped",
    "workers/child/verification.py",
    "workers/messages/orders.py",
    "workers/messages/spec.py",
    "workers/engine/evaluator",
    *(f"workers/tvm_backend/{part}.py" for part in ("arguments", "footprint", "handover", "moment", "stopwatch")),
    *(f"workers/benchmarks/{part}.py" for part in ("bench", "inside", "judge", "process", "turns")),
)
"""What times a library beside ONNX Runtime and its operators."""
STOCK = (
    *(f"workers/benchmarks/{part}.py" for part in ("stock", "stock_runner", "warm_builder")),
    *(f"workers/tvm_backend/{part}.py" for part in ("linking", "operators", "programs", "runtime")),
    *FINALS,
)
RECORDS = ("workers/headless/records.py", "workers/messages/known.py", "workers/benchmarks/again.py")
TUNING = (*IMPORT, "workers/child", ENGINE, "workers/pipeline", "workers/tvm_backend")
FOLDING = tuple(
    f"workers/{part}.py"
    for part in ("benchmarks/tally", "benchmarks/curve", "messages/believed", "messages/causes", "messages/foretold")
)
"""What makes a cell of a run's events."""
COMPOSING = ("workers/messages/composition.py", "workers/messages/values.py")
"""What a method may be put together of, and between which numbers."""
TUNED = (*TUNING, *COMPOSING, *FOLDING, *FINALS, "workers/benchmarks/ours.py")


DECIDING = ("numpy", "scipy", "scikit-learn", "xgboost-cpu", "torch", "emcee")


def operators_key(keys: Iterable[str]) -> str:
    """Twelve hexadecimal digits that tell one set of operators from another."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:12]


def product_version(rooms: Iterable[str]) -> str:
    """Release, TVM's release, ONNX Runtime's where it is timed, and a digest of the rooms' sources and, with the engine's, of
    the libraries by which it decides and of the methods' parts and numbers: what changes none of them, as what is said of a
    method, leaves cells valid."""
    release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    named = dict.fromkeys(rooms)
    digest = hashed(ROOT, named)
    if ENGINE in named:
        digest.update("\n".join(f"{name} {version(name)}" for name in DECIDING).encode())
        digest.update("\n".join(f"{name} {METHODS[name].definition}" for name in sorted(METHODS)).encode())
    peer = f" onnxruntime {version('onnxruntime')}" if set(FINALS) <= named.keys() else ""
    return f"{release}+{digest.hexdigest()[:8]} tvm {version('apache-tvm')}{peer}"
