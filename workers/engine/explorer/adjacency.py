"""Options of a knob that are one small change apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import Choices, Sketch


@dataclass(frozen=True)
class Adjacency:
    """Per knob, the neighbours of all its options in one array: those of option i are flat[edges[i]:edges[i + 1]]."""

    flat: tuple[Choices, ...]
    edges: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, sketch: Sketch) -> Adjacency:
        tables = [_table(knob.kind, knob.options) for knob in sketch.knobs]
        return cls(tuple(flat for flat, _ in tables), tuple(edges for _, edges in tables))

    def moved(self, rows: Choices, knobs: NDArray[np.intp], luck: NDArray[np.float64]) -> Choices:
        """Of each of `rows` (n, all knobs) what its knob of `knobs` (n,) becomes, by `luck` in [0, 1); see `draw`."""
        options = rows[np.arange(len(rows)), knobs]
        for knob in np.unique(knobs):
            mine = knobs == knob
            options[mine] = self.draw(int(knob), options[mine], luck[mine])
        return options

    def draw(self, knob: int, options: Choices, luck: NDArray[np.float64]) -> Choices:
        """A random neighbour of each of `options` (n,) of `knob`, by `luck` in [0, 1); itself where there is none."""
        edges = self.edges[knob]
        degrees = edges[options + 1] - edges[options]
        places = edges[options] + (luck * degrees).astype(np.int64)
        alone = degrees == 0
        return (
            np.where(alone, options, self.flat[knob][np.where(alone, 0, places)]) if len(self.flat[knob]) else options
        )


@lru_cache(maxsize=4096)
def _table(kind: str, options: tuple[tuple[int, ...], ...]) -> tuple[Choices, NDArray[np.int64]]:
    """Of a knob; one for all that tile loops of the same extent."""
    pairs = _moved_factors(options) if kind == "tile" else _all_others(len(options))
    order = np.argsort(pairs[0], kind="stable")
    degrees = np.bincount(pairs[0], minlength=len(options))
    return pairs[1][order].astype(np.int32), np.concatenate([[0], np.cumsum(degrees)])


def _all_others(size: int) -> NDArray[np.int64]:
    grid = np.stack(np.divmod(np.arange(size * size), max(size, 1)))
    return grid[:, grid[0] != grid[1]]


def _divisors(extent: int, most: int) -> list[int]:
    """From 2 to `most`."""
    found = np.arange(2, most + 1)
    divisors: list[int] = found[extent % found == 0].tolist()
    return divisors


def _moved_factors(options: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
    """(from, to) of all options that differ by one factor moved from one level to another, as (2, pairs). Every option is a
    factorisation of one extent, whose divisors are all there is to move."""
    tiles = np.asarray(options, dtype=np.int64)
    levels, base = tiles.shape[1], int(tiles.max()) + 1
    powers = base ** np.arange(levels, dtype=np.int64)
    keys = tiles @ powers
    order = np.argsort(keys)
    found = [np.zeros((2, 0), dtype=np.int64)]
    for factor in _divisors(int(tiles[0].prod()), base - 1):
        for level in range(levels):
            divisible = np.flatnonzero(tiles[:, level] % factor == 0)
            if not divisible.size:
                continue
            moved = tiles[divisible, level]
            for other in (other for other in range(levels) if other != level):
                target = keys[divisible] - (moved - moved // factor) * powers[level]
                target += tiles[divisible, other] * (factor - 1) * powers[other]
                # A larger factor than any option has would spill into the next level's digits.
                inside = tiles[divisible, other] * factor < base
                place = order[np.minimum(np.searchsorted(keys, target, sorter=order), len(keys) - 1)]
                known = inside & (keys[place] == target)
                found.append(np.stack([divisible[known], place[known]]))
    return np.concatenate(found, axis=1)
