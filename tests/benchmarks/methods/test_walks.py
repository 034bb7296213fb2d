"""How explorers are compared in spaces of millions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.engine.synthetic_search import convolution
from workers.benchmarks.methods import walks
from workers.benchmarks.methods.walks import Gain, Walker, widened
from workers.engine.methods import METHODS, Method, method
from workers.engine.space import Choices, Knob, Sketch

PART = Sketch((Knob("loop", "tile", ((1, 128), (8, 16), (32, 4))), Knob("unroll", "category", ((0,), (64,)))))
SHORT = method("autotvm", {"explorer.chains": "8", "explorer.steps": "20"})
AGENT = method("chameleon", {"explorer.episodes": "16", "explorer.together": "8", "explorer.steps": "6"})


def test_a_part_gets_every_tiling_of_its_loops_and_keeps_what_it_had() -> None:
    tile, unroll = widened(PART).knobs
    assert unroll == PART.knobs[1]
    assert set(PART.knobs[0].options) <= set(tile.options)
    others = set(tile.options) - set(PART.knobs[0].options)
    assert others == {(128 // f, f) for f in (1, 2, 8, 32, 64)}
    assert list(tile.options) == sorted(tile.options)


@pytest.mark.parametrize("chosen", [SHORT, AGENT], ids=["annealing", "agent"])
def test_a_walk_is_what_it_scores_in_its_order_without_what_was_visited(chosen: Method) -> None:
    """Best-scored visited configurations, which an agent begins some episodes with, are scored before the walk."""
    operator = convolution()
    sketch = operator.sketches[0]
    visited = {tuple(row) for row in sketch.random(np.random.default_rng(1), 64).tolist()}
    walker = Walker.of(chosen, operator, 0)

    def score(choices: Choices) -> walks.Array:
        return np.asarray([1e3 if tuple(row) in visited else float(sum(row)) for row in choices.tolist()])

    best, proposed = walker.walk(sketch, score, 16, visited)
    assert len(best) == walker.explorer.figures["evaluations"]
    assert best[-1] == sum(proposed[0]) < 1e3
    assert (np.diff(best) >= 0).all()
    assert walker.steps(walker.width) == 1
    assert walker.steps(walker.width + 1) == 2


def test_a_step_is_one_of_each_chain_and_of_each_episode_whatever_walks_together() -> None:
    assert [Walker.of(chosen, convolution(), 0).width for chosen in (SHORT, AGENT)] == [8, 16]
    assert [Walker.of(METHODS[name], convolution(), 0).width for name in ("autotvm", "chameleon-ae")] == [128, 128]


def test_steps_are_counted_to_a_common_end_and_to_the_own() -> None:
    """The agent, of half the width, ends at half the speed: to that annealing needs a step, and to its own end all four."""
    walkers = [replace(Walker.of(SHORT, convolution(), 0), width=width) for width in (4, 2)]
    theirs = np.repeat([-1.0, -0.9, -0.5, 0.0], 4)
    ours = np.repeat([-2.0, -1.0, -1.0, -1.0], 2)
    assert walks._gain(walkers, (theirs, ours)) == Gain(own=2.0, steps=0.5, best=0.5)
    assert walks._gain(walkers, (theirs, theirs))[1:] == (4 / 7, 1.0)


@pytest.mark.mutation
def test_an_agent_that_is_annealing_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, walks.SA, SHORT)
    found = walks.walks(convolution(), SHORT, 0)
    assert found == [Gain(1.0, 1.0, 1.0)] * walks.WALKS
    monkeypatch.setattr(walks, "WALKS", 2)
    other = walks.walks(convolution(), AGENT, 0)
    assert len(other) == 2
    assert all(math.isfinite(figure) and figure > 0 for gain in other for figure in gain)
    assert other != found[:2]
