"""From scheduled programs to machine code: TVM's own way, with vectors in parts, little work by one core, and without checks
that nobody needs."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.tirx.compilation_pipeline import get_tir_pipeline, register_tir_pipeline

from workers.tvm_backend.hardware import is_gpu, vector_lanes
from workers.tvm_backend.parts import in_parts
from workers.tvm_backend.serial import by_one
from workers.tvm_backend.unchecked import SkipMarkedAsserts

PIPELINE = "tuning"
"""Its name, as TVM's builds are told."""
VERSION = 5
"""Raised when an option becomes another schedule than before, or a schedule another program: what it took says nothing any
more."""


@tvm.transform.module_pass(opt_level=0, name="ForProcessors")
class ForProcessors:
    """What is ours of it, for functions that know their target."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        for variable, function in mod.functions_items():
            target = function.attrs.get("target") if isinstance(function, tirx.PrimFunc) else None
            if target is not None and not is_gpu(target):
                lanes = vector_lanes(target)
                mod[variable] = in_parts(by_one(function, lanes), lanes)
        return mod


def _pipeline() -> tuple[Any, Any, Any]:
    lowering, host, device = get_tir_pipeline("default")
    return (
        tvm.transform.Sequential([ForProcessors(), lowering]),
        lambda: tvm.transform.Sequential([host(), SkipMarkedAsserts()]),
        device,
    )


register_tir_pipeline(PIPELINE, _pipeline)
