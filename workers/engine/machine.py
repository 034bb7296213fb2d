"""What rules of thumb need to know of a processor; of a GPU see `gpu`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Machine:
    """Vector lanes of float32, vector registers, cores, and bytes of a core's first- and second-level cache."""

    lanes: int = 8
    registers: int = 16
    cores: int = 1
    cache: int = 32768
    second: int = 1 << 20

    def with_caches(self, told: Sequence[int | None]) -> Machine:
        """With the first and the second level of what is `told` of a core's, each where it is."""
        first, second = told
        return replace(self, cache=first or self.cache, second=second or self.second)


def vector_lanes(features: Collection[str]) -> int:
    """Numbers of float32 in a vector register: those of AVX-512, of AVX, or of SSE and NEON."""
    return 16 if "avx512f" in features else 8 if "avx" in features else 4


def vector_registers(features: Collection[str]) -> int:
    """AVX-512 and NEON, which the kernel calls asimd, have 32, SSE and AVX 16."""
    return 32 if {"avx512f", "neon", "asimd"}.intersection(features) else 16
