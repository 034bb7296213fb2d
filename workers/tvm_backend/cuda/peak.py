"""A GPU's true ceilings: arithmetic from registers only, and memory bandwidth."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm.script import tirx as T

from workers.tvm_backend.cuda.timer import AWAKE
from workers.tvm_backend.peak import Peak
from workers.tvm_backend.timer import Entry

THREADS, BLOCKS, SUMS, STEPS = 256, 16, 8, 1 << 12
"""Threads of a block, blocks a multiprocessor, sums a thread, and products added to each."""
COPIED = 1 << 26
"""float32, 256 MiB each way: several times what caches hold."""
REPEATS = 30


def peak_alone(target: dict[str, Any], multiprocessors: int, turn: AbstractContextManager[Any]) -> dict[str, float]:
    """Fields of `Peak`, best of some, measured within `turn`."""
    device, compiled_for = tvm.cuda(0), tvm.target.Target(target)
    blocks = BLOCKS * multiprocessors
    with compiled_for:
        arithmetic = tvm.tirx.build(_arithmetic(blocks), target=compiled_for)
        copy = tvm.tirx.build(_copy(COPIED), target=compiled_for)
    factors = tvm.runtime.tensor(np.full(1, 0.999, "float32"), device)
    sums = tvm.runtime.empty((blocks * THREADS,), "float32", device)
    source = tvm.runtime.tensor(np.ones(COPIED, "float32"), device)
    sink = tvm.runtime.empty((COPIED,), "float32", device)
    with turn:
        added = _quickest(partial(arithmetic.time_evaluator, "main", device), factors, sums)
        copied = _quickest(partial(copy.time_evaluator, "main", device), source, sink)
    return asdict(Peak(2.0 * blocks * THREADS * SUMS * STEPS / added, 8.0 * COPIED / copied))


def _quickest(entry: Entry, *arguments: Any) -> float:
    """Seconds of the quickest call, of a GPU whose clock came up from what it is at rest."""
    (first,) = entry(number=1, repeat=1)(*arguments).results
    entry(number=math.ceil(AWAKE / max(first, 1e-6)), repeat=1)(*arguments)
    return float(min(entry(number=1, repeat=REPEATS)(*arguments).results))


def _arithmetic(blocks: int) -> tvm.IRModule:
    names = [f"held{k}" for k in range(SUMS)]
    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main(factors: T.Buffer((1,), 'float32'), sums: T.Buffer(({blocks * THREADS},), 'float32')):",
        "    T.func_attr({'tirx.noalias': True})",
        f"    for block in T.thread_binding({blocks}, thread='blockIdx.x'):",
        f"        for thread in T.thread_binding({THREADS}, thread='threadIdx.x'):",
        "            with T.sblock('work'):",
        f"                place = T.axis.spatial({blocks * THREADS}, block * {THREADS} + thread)",
        "                T.reads(factors[0])",
        "                T.writes(sums[place])",
        *(f"                {n} = T.sblock_alloc_buffer((1,), 'float32', scope='local')" for n in [*names, "scale"]),
        "                scale[0] = factors[0]",
        *(f"                {name}[0] = scale[0] * T.float32({k})" for k, name in enumerate(names)),
        f"                for _step in T.serial({STEPS}):",
        *(f"                    {name}[0] = {name}[0] * scale[0] + scale[0]" for name in names),
        f"                sums[place] = {' + '.join(f'{name}[0]' for name in names)}",
    ]
    return tvm.IRModule({"main": tvm.script.from_source("\n".join(lines), {"T": T})})


def _copy(count: int) -> tvm.IRModule:
    place = f"(block * {THREADS} + thread) * 4 + lane"
    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main(source: T.Buffer(({count},), 'float32'), sink: T.Buffer(({count},), 'float32')):",
        f"    for block in T.thread_binding({count // THREADS // 4}, thread='blockIdx.x'):",
        f"        for thread in T.thread_binding({THREADS}, thread='threadIdx.x'):",
        "            for lane in T.vectorized(4):",
        f"                sink[{place}] = source[{place}]",
    ]
    return tvm.IRModule({"main": tvm.script.from_source("\n".join(lines), {"T": T})})
