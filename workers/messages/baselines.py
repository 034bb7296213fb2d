"""The lines that a run is compared with, by name, and the packages whose versions decide what they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

ONNX_RUNTIME, UNTUNED = "ONNX Runtime", "TVM untuned"
BASELINES = (ONNX_RUNTIME, UNTUNED)
PACKAGES = ("onnxruntime", "apache-tvm")


def complete(lines: Iterable[Mapping[str, Any]]) -> bool:
    """Whether each was taken."""
    return {*BASELINES} <= {line.get("name") for line in lines}
