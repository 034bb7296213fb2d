"""What rules of thumb need to know of a processor; of a GPU see `gpu`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """Vector lanes of float32, vector registers, cores, first-level cache in bytes."""

    lanes: int = 8
    registers: int = 16
    cores: int = 1
    cache: int = 32768


def vector_lanes(features: Collection[str]) -> int:
    """Numbers of float32 in a vector register: those of AVX-512, of AVX, or of SSE and NEON."""
    return 16 if "avx512f" in features else 8 if "avx" in features else 4


def vector_registers(features: Collection[str]) -> int:
    """AVX-512 and NEON, which the kernel calls asimd, have 32, SSE and AVX 16."""
    return 32 if {"avx512f", "neon", "asimd"}.intersection(features) else 16
