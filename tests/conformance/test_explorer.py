"""What every explorer owes a proposer."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.synthetic_search import CONVOLUTION, TINY, convolution
from workers.engine.explorer import EXPLORERS
from workers.engine.methods import METHODS, Method
from workers.engine.ports import Explorer
from workers.engine.space import Choices, Sketch
from workers.landscapes.parameters import resolved, walking

EMPTY = Sketch(())
pytestmark = pytest.mark.parametrize("name", sorted(EXPLORERS))


def score(choices: Choices) -> NDArray[np.float64]:
    return np.sin(choices.astype(np.float64)).sum(axis=1)


def of(name: str) -> Method:
    return replace(METHODS["dynatune"], explorer=name)


def made(name: str, seed: int = 3) -> Explorer:
    return EXPLORERS[name](np.random.default_rng(seed))


@pytest.mark.parametrize("sketch", [CONVOLUTION, TINY, EMPTY], ids=["large", "tiny", "single"])
def test_returns_distinct_unvisited_choices_inside_the_sketch_best_first(name: str, sketch: Sketch) -> None:
    explorer, visited = made(name), set(map(tuple, sketch.random(np.random.default_rng(0), 3).tolist()))
    for _ in range(3):
        found, steps = explorer.explore(sketch, score, 12, visited)
        rows = [tuple(row) for row in found.tolist()]
        assert found.dtype == np.int32
        assert found.shape == (min(12, sketch.size - len(visited)), len(sketch.knobs))
        assert len(set(rows)) == len(rows)
        assert not visited & set(rows)
        assert (found >= 0).all()
        assert (found < sketch.sizes).all()
        assert (np.diff(score(found)) <= 0).all()
        assert steps >= 0
        visited |= set(rows)


def test_walks_a_second_sketch_after_a_first(name: str) -> None:
    explorer = made(name)
    explorer.explore(CONVOLUTION, score, 4, set())
    found, _ = explorer.explore(TINY, score, 4, set())
    assert found.shape == (4, 2)
    assert explorer.explore(CONVOLUTION, score, 4, set())[0].shape == (4, 6)


def test_a_restored_explorer_goes_on_as_the_first_one(name: str) -> None:
    first, second = made(name, 3), made(name, 4)
    first.explore(CONVOLUTION, score, 8, set())
    second.restore(json.loads(json.dumps(first.state())))
    for _ in range(2):
        ours, theirs = first.explore(CONVOLUTION, score, 8, set()), second.explore(CONVOLUTION, score, 8, set())
        assert ours[1] == theirs[1]
        assert (ours[0] == theirs[0]).all()


def test_a_state_is_small_enough_for_every_checkpoint(name: str) -> None:
    explorer = made(name)
    explorer.explore(CONVOLUTION, score, 8, set())
    assert len(json.dumps(explorer.state())) < 20_000


def test_figures_count_the_last_call(name: str) -> None:
    explorer = made(name)
    assert explorer.figures == {}
    _, steps = explorer.explore(CONVOLUTION, score, 8, set())
    if steps:
        figures = explorer.figures
        assert 0 <= figures["steps_to_best"] <= figures["evaluations"]
        assert 0 < figures["evaluations_to_best"] <= figures["evaluations"]


def test_begun_is_what_a_walk_without_a_step_would_have_given(name: str) -> None:
    explorer, visited = made(name), set(map(tuple, CONVOLUTION.random(np.random.default_rng(0), 64).tolist()))
    found, _ = explorer.explore(CONVOLUTION, score, 12, visited)
    begun = explorer.begun
    assert begun is not None
    assert begun.shape == found.shape
    assert len({*map(tuple, begun.tolist())} - visited) == len(begun)
    assert (score(found) >= score(begun)).all(), "best first, and a walk gives up nothing better"
    flat, _ = explorer.explore(CONVOLUTION, lambda choices: np.zeros(len(choices)), 12, visited)
    assert (flat == explorer.begun).all(), "where nothing is better than the start it is the start"


def test_it_walks_where_a_landscape_wants_it_to(name: str) -> None:
    """By a parameter of one name: another's would have it score recorded parts whole, as no network's operator is."""
    explorer = walking(of(name)).make_explorer(convolution(), np.random.default_rng(3))
    explorer.explore(TINY, score, 4, set())
    assert explorer.begun is not None


def test_a_sketch_that_is_scored_whole_begins_with_nothing(name: str) -> None:
    explorer = made(name)
    explorer.explore(TINY, score, 4, set())
    assert (explorer.begun is None) == resolved("explorer", of(name)).get("exhaustive", False)
    explorer.explore(EMPTY, score, 1, set())
    assert (explorer.begun is None) == (name != "random")


def test_equal_seeds_explore_equally(name: str) -> None:
    one, two = (made(name, 5).explore(CONVOLUTION, score, 8, set())[0] for _ in range(2))
    assert (one == two).all()
