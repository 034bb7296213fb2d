"""Features, grids and draws of a design space."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.engine.space import Knob, Sketch

factors = st.tuples(*[st.sampled_from([1, 2, 4, 8, 7])] * 3)
tiles = st.lists(factors, min_size=1, max_size=6, unique=True).map(lambda o: Knob("t", "tile", tuple(o)))
values = st.lists(st.integers(0, 512), min_size=1, max_size=5, unique=True)
categories = values.map(lambda o: Knob("c", "category", tuple((v,) for v in o)))
locations = st.integers(1, 5).map(lambda n: Knob("l", "location", tuple((v - 2,) for v in range(n))))
sketches = st.lists(tiles | categories | locations, max_size=5).map(lambda knobs: Sketch(tuple(knobs)))


@given(sketches, st.integers(0, 2**32), st.integers(0, 40))
@settings(deadline=None, max_examples=60)
def test_features_are_finite_rows_and_equal_for_equal_choices(sketch: Sketch, seed: int, count: int) -> None:
    choices = sketch.random(np.random.default_rng(seed), count)
    features = sketch.features(choices)
    assert features.shape == (count, sketch.width)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    assert (features == sketch.features(choices.copy())).all()


@given(sketches)
@settings(deadline=None, max_examples=60)
def test_grid_holds_every_choice_once(sketch: Sketch) -> None:
    grid = sketch.grid()
    assert grid.shape == (sketch.size, len(sketch.knobs))
    assert len({tuple(row) for row in grid.tolist()}) == sketch.size == math.prod(len(k.options) for k in sketch.knobs)
    assert (grid >= 0).all()
    assert (grid < sketch.sizes).all()


@given(sketches, st.integers(0, 2**32), st.integers(0, 30), st.integers(0, 30))
@settings(deadline=None, max_examples=60)
def test_unvisited_draws_are_distinct_new_and_as_many_as_asked(
    sketch: Sketch, seed: int, count: int, known: int
) -> None:
    rng = np.random.default_rng(seed)
    visited = {tuple(row) for row in sketch.random(rng, known).tolist()}
    drawn = [tuple(row) for row in sketch.unvisited(rng, count, visited).tolist()]
    assert len(set(drawn)) == len(drawn)
    assert not visited & set(drawn)
    assert len(drawn) == min(count, sketch.size - len(visited))


def test_tile_features_are_logarithms_of_factors_and_of_inner_blocks() -> None:
    knob = Knob("t", "tile", ((2, 4, 8),))
    assert knob.features.tolist() == [[1.0, 2.0, 3.0, 5.0, 3.0]]


def test_a_large_sketch_refuses_to_be_enumerated_but_draws() -> None:
    big = Sketch(tuple(Knob(f"k{i}", "category", tuple((v,) for v in range(50))) for i in range(5)))
    with pytest.raises(ValueError, match="312500000 configurations"):
        big.grid()
    assert big.unvisited(np.random.default_rng(0), 20, set()).shape == (20, 5)
