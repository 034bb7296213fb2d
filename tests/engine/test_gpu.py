"""What a program asks of a GPU, told from its tiles, and what is drawn and begun with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workers.engine import gpu_rules
from workers.engine.gpu import Bounds, Gpu, Grid
from workers.engine.space import Knob, Sketch, tilings
from workers.engine.start import first_configurations

GPU = Gpu(multiprocessors=20)
FETCH = Knob("category", "category", ((1,), (2,), (3,), (4,)))


def sketch_of(*extents: int, reduction: int = 64, bounds: Bounds | None = GPU.bounds) -> Sketch:
    """A product of `extents`, summed up over `reduction`."""
    spatial = [Knob(f"tile{n}", "tile", tilings(extent, 5, 64)) for n, extent in enumerate(extents)]
    return Sketch((*spatial, Knob("sums", "tile", tilings(reduction, 3, 64)), FETCH), bounds)


def test_the_parts_of_tiles_are_blocks_threads_and_sums() -> None:
    tiles = [np.asarray([[2.0, 3, 5, 7, 11]]), np.asarray([[13.0, 17, 19, 23, 29]]), np.asarray([[31.0, 37, 41]])]
    grid = Grid.of(tiles)
    assert grid is not None
    assert (grid.blocks, grid.threads, grid.step) == (2 * 13, 5 * 19, 37 * 41)
    assert grid.sums == 3 * 7 * 11 * 17 * 23 * 29
    assert grid.shared == 4 * 37 * 41 * (17 * 19 * 23 * 29 + 3 * 5 * 7 * 11)
    assert grid.lines == (13 * 17 * 19 * 23 * 29, 19)


def test_a_whole_warp_is_asked_of_many_results_alone() -> None:
    """A classifier of ten classes has no 32 threads to give."""
    few, many = Grid.of([np.asarray([[2.0, 1, 5, 1, 1]])]), Grid.of([np.asarray([[20.0, 1, 5, 1, 1]])])
    assert few is not None
    assert many is not None
    assert (few.results, many.results) == (10, 100)
    assert (few.fits(Bounds()), many.fits(Bounds())) == (True, False)


def test_what_has_no_tiles_of_a_gpu_has_no_grid() -> None:
    assert Grid.of([np.ones((3, 4)), np.ones((3, 2)), np.ones((3, 1))]) is None


def test_whole_numbers_are_fetched_a_few_at_a_time_too() -> None:
    """Of which TVM lets a thread fetch sixteen, and then refuses all that are over 16 bytes."""
    fetch = Knob("category", "category", ((1,), (2,), (3,), (4,), (8,), (16,)))
    penalties = gpu_rules.gpu_penalty(Sketch((fetch,)), np.arange(6, dtype=np.int32)[:, None], GPU)
    assert fetch.options[int(penalties.argmin())] == (2,)


@pytest.mark.parametrize(
    ("bounds", "fits"),
    [(Bounds(), True), (Bounds(threads=64), False), (Bounds(shared=4 * 16 * (64 + 8) - 1), False)],
)
def test_a_program_fits_a_gpu_that_has_its_threads_and_its_memory(bounds: Bounds, fits: bool) -> None:
    grid = Grid.of([np.asarray([[4.0, 1, 4, 2, 1]]), np.asarray([[2.0, 1, 32, 1, 2]]), np.asarray([[4.0, 1, 16]])])
    assert grid is not None
    assert grid.fits(bounds).tolist() == [fits]


@pytest.mark.parametrize("extents", [(56, 56, 64), (64, 256)])
def test_only_what_fits_is_drawn(extents: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    sketch, free = sketch_of(*extents), sketch_of(*extents, bounds=None)
    drawn = sketch.unvisited(rng, 64, ())
    assert len(drawn) > 8
    assert _fitting(sketch, drawn) == 1.0
    assert _fitting(sketch, sketch.random(rng, 64)) == 1.0
    assert _fitting(sketch, free.unvisited(rng, 64, ())) < 0.9, "what is drawn without a GPU"


@pytest.mark.parametrize("extents", [(1, 1031), (21841, 3)])
def test_where_nothing_fits_what_is_left_is_drawn_until_none_is(extents: tuple[int, ...]) -> None:
    """A classifier of a prime number of classes has no whole warp: its operator ends as one whose configurations fail, and does
    not ask for slots in which nothing is proposed."""
    rng, sketch = np.random.default_rng(0), sketch_of(*extents)
    drawn = sketch.unvisited(rng, 16, ())
    assert len({tuple(row) for row in drawn.tolist()}) == 16
    assert _fitting(sketch, drawn) == 0.0
    every = {tuple(row) for row in sketch.grid().tolist()}
    last = every.pop()
    assert sketch.unvisited(rng, 16, every).tolist() == [list(last)]
    assert len(sketch.unvisited(rng, 16, {*every, last})) == 0


def test_where_nothing_of_a_large_sketch_fits_others_are_drawn() -> None:
    sketch = sketch_of(2048, 2048, reduction=4096, bounds=Bounds(threads=16))
    drawn = sketch.unvisited(np.random.default_rng(0), 16, ())
    assert not sketch.enumerable
    assert len({tuple(row) for row in drawn.tolist()}) == 16


def test_first_configurations_keep_the_multiprocessors_at_work() -> None:
    sketch = sketch_of(28, 28, 128)
    rows = np.asarray([found.choices for found in first_configurations((sketch,), GPU, 4)], dtype=np.int32)
    grid = Grid.of(sketch.values(rows))
    assert grid is not None
    assert grid.fits(GPU.bounds).all()
    assert (grid.blocks >= GPU.multiprocessors).all()
    assert (grid.threads % 32 == 0).all()
    assert (sketch.values(rows)[-1] != 3).all()


@pytest.mark.mutation
@pytest.mark.parametrize("extents", [(2048, 2048)])
def test_without_the_rule_of_what_is_refused_the_first_ones_are(
    extents: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sketch, small = sketch_of(*extents, reduction=4096), Gpu(1, Bounds(threads=64, shared=2048))

    def fitting() -> float:
        rows = [found.choices for found in first_configurations((sketch,), small, 4)]
        grid = Grid.of(sketch.values(np.asarray(rows, dtype=np.int32)))
        assert grid is not None
        return float(np.mean(grid.fits(small.bounds)))

    assert fitting() == 1.0
    monkeypatch.setattr(gpu_rules, "FORBIDDEN", 0.0)
    assert fitting() == 0.0


def _fitting(sketch: Sketch, choices: np.ndarray) -> float:
    grid = Grid.of(sketch.values(choices))
    assert grid is not None
    assert math.prod(choices.shape)
    return float(np.mean(grid.fits(GPU.bounds)))
