"""Arguments for MetaSchedule's local runner that no program crashes on."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.runtime import tensor
from tvm.s_tir.meta_schedule.runner.local_runner import default_alloc_argument


def arguments(device: Any, wanted: Any, repeats: int) -> Any:
    """TVM's own, but for integers, which are 0. Called in the runner's process; `wanted` are (kind, type, shape).

    Random integers are indices that lie nowhere: a gather crashes on them, and its network would have no record of it.
    """
    found = default_alloc_argument(device, wanted, repeats)
    for given in found:
        for place, (_, dtype, shape) in enumerate(wanted):
            if not str(dtype).startswith(("float", "bfloat")):
                given[place] = tensor(np.zeros([int(n) for n in shape], str(dtype)), device)
    return found
