"""The target's true ceilings: arithmetic from registers only, and memory bandwidth; all else is measured against them."""

from __future__ import annotations

import math
import os
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import tvm
from tvm.script import tirx as T

from workers.tvm_backend import runtime
from workers.tvm_backend.hardware import last_caches, vector_lanes, vector_registers

FEW, MANY = 12, 24
"""Vectors of sums, with 16 and with 32 registers, which hold two factors too: as many as latency x issue width asks for at
least, which are 8 or 10 on x86 and 16 on ARM's servers."""
STEPS = 1 << 17
"""Of each timing, about half a millisecond: with eight programs waiting for two cores one of 5 ms was never left alone, and
the peak of 340 GFLOPS came out as 60 to 130."""
COPIED = 1 << 25
"""float32, 128 MiB each way, at least: together twice what all caches hold."""
TRIES, REST = 8, 0.05
"""Where virtual cores are put on halves of one core they stay there while both are at work, and half is what they can do (one
start in eight on a busy host): so many times they rest for so many seconds, and may be put elsewhere."""
SUMMED, COPIES = 320, 40
"""Timings of arithmetic and of copying, as many after every rest."""


@dataclass(frozen=True)
class Peak:
    """FLOP/s and bytes/s on the threads it was measured with."""

    flops: float
    bandwidth: float


def measure_peak(target: dict[str, Any], threads: int) -> Peak:
    """The best of many timings for both: a ceiling is what the machine can do when nobody disturbs it. Takes about 3 s."""
    compiled_for = tvm.target.Target(target)
    return Peak(arithmetic_peak(compiled_for, threads), _bandwidth(compiled_for, threads))


def arithmetic_peak(target: tvm.target.Target, threads: int) -> float:
    """FLOP/s."""
    lanes, held = vector_lanes(target), accumulators(target)
    program = tvm.tirx.build(_arithmetic(threads, lanes, held), target=target)
    factors = tvm.runtime.tensor(np.full(lanes, 0.999, "float32"), tvm.cpu())
    sums = tvm.runtime.empty((threads, held * lanes), "float32", tvm.cpu())
    return 2.0 * threads * held * lanes * STEPS / _fastest(program, SUMMED, factors, sums)


def _bandwidth(target: tvm.target.Target, threads: int) -> float:
    """Bytes/s."""
    count = max(COPIED, last_caches() // 4)
    program = tvm.tirx.build(_copy(threads, vector_lanes(target), count), target=target)
    source, sink = (tvm.runtime.tensor(np.ones(count, "float32"), tvm.cpu()) for _ in range(2))
    return 8.0 * count / _fastest(program, COPIES, source, sink)


def accumulators(target: tvm.target.Target) -> int:
    """Vectors that are added up in registers."""
    return MANY if vector_registers(target) > 2 * FEW else FEW


def peak_alone(target: dict[str, Any], threads: int, turn: AbstractContextManager[Any]) -> dict[str, float]:
    """Fields of `Peak`, measured within `turn`. The environment's variables are read when the first kernel makes TVM's thread
    pool: without them the ceiling would be that of half the cores."""
    os.environ.update(runtime.environment(threads))
    cores = runtime.spread_threads()
    with turn, runtime.on_core(cores):
        return asdict(measure_peak(target, threads))


def _fastest(program: tvm.runtime.Module, timings: int, *arguments: Any) -> float:
    timed = program.time_evaluator("main", tvm.cpu(), number=1, repeat=timings // TRIES)
    fastest = math.inf
    for _ in range(TRIES):
        time.sleep(REST)
        fastest = min(fastest, *timed(*arguments).results)
    return fastest


def _arithmetic(threads: int, lanes: int, held: int) -> tvm.IRModule:
    """One accumulator of the `held` a buffer, of so many `lanes`: larger ones would be put on the heap, and what is
    measured would be their stores; or with more lanes than a register has: half of the accumulators lie in memory then."""
    names = [f"held{k}" for k in range(held)]
    allocate = [f"{name} = T.sblock_alloc_buffer(({lanes},), 'float32', scope='local')" for name in names]
    begin = [f"{name}[lane] = factors[lane] * T.float32({k})" for k, name in enumerate(names)]
    step = [f"{name}[lane] = {name}[lane] * scale[lane] + shift[lane]" for name in names]
    end = [f"sums[thread, {k * lanes} + lane] = {name}[lane]" for k, name in enumerate(names)]
    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main(factors: T.Buffer(({lanes},), 'float32'), sums: T.Buffer(({threads}, {held * lanes}), 'float32')):",
        "    T.func_attr({'tirx.noalias': True})",
        f"    for thread in T.parallel({threads}):",
        "        with T.sblock('work'):",
        f"            t = T.axis.spatial({threads}, thread)",
        f"            T.reads(factors[0:{lanes}])",
        f"            T.writes(sums[t, 0:{held * lanes}])",
        *(
            f"            {line}"
            for line in [
                *allocate,
                *(f"{n} = T.sblock_alloc_buffer(({lanes},), 'float32', scope='local')" for n in ("scale", "shift")),
            ]
        ),
        *_vectorized(["scale[lane] = factors[lane]", "shift[lane] = factors[lane]"], 3, lanes),
        *_vectorized(begin, 3, lanes),
        f"            for _step in T.serial({STEPS}):",
        *_vectorized(step, 4, lanes),
        *_vectorized([line.replace("thread", "t") for line in end], 3, lanes),
    ]
    return tvm.IRModule({"main": tvm.script.from_source("\n".join(lines), {"T": T})})


def _vectorized(statements: list[str], depth: int, lanes: int) -> list[str]:
    pad = "    " * depth
    return [line for s in statements for line in (f"{pad}for lane in T.vectorized({lanes}):", f"{pad}    {s}")]


def _copy(threads: int, lanes: int, count: int) -> tvm.IRModule:
    place = f"(thread * {count // threads // lanes} + i) * {lanes} + lane"
    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main(source: T.Buffer(({count},), 'float32'), sink: T.Buffer(({count},), 'float32')):",
        f"    for thread in T.parallel({threads}):",
        f"        for i in T.serial({count // threads // lanes}):",
        *_vectorized([f"sink[{place}] = source[{place}]"], 3, lanes),
    ]
    return tvm.IRModule({"main": tvm.script.from_source("\n".join(lines), {"T": T})})
