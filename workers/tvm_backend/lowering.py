"""From scheduled programs to machine code: TVM's own way, with vectors in parts, little work by one core, and without checks
that nobody needs."""

from __future__ import annotations

from typing import Any

import tvm
from tvm.tirx.compilation_pipeline import get_tir_pipeline, register_tir_pipeline

from workers.tvm_backend.parts import InParts
from workers.tvm_backend.serial import LittleByOne
from workers.tvm_backend.unchecked import SkipMarkedAsserts

PIPELINE = "tuning"
"""Its name, as TVM's builds are told."""
VERSION = 4
"""Raised when a schedule becomes another program than before: what it took says nothing any more."""


def _pipeline() -> tuple[Any, Any, Any]:
    lowering, host, device = get_tir_pipeline("default")
    return (
        tvm.transform.Sequential([LittleByOne(), InParts(), lowering]),
        lambda: tvm.transform.Sequential([host(), SkipMarkedAsserts()]),
        device,
    )


register_tir_pipeline(PIPELINE, _pipeline)
