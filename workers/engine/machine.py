"""What rules of thumb need to know of a processor; of a GPU see `gpu`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """Vector lanes of float32, vector registers, cores, first-level cache in bytes."""

    lanes: int = 8
    registers: int = 16
    cores: int = 1
    cache: int = 32768
