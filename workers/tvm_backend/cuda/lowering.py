"""From a network's operators to the TensorIR functions that are tuned, on a GPU."""

from __future__ import annotations

import tvm
from tvm import relax

from workers.tvm_backend import constants


def lowered_for_gpu(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    """Fused functions, without what a processor's caches and vectors ask for."""
    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        constants.Fold(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]
    with target:
        return tvm.transform.Sequential(passes)(mod)
