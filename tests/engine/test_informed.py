"""Random configurations by the rules of the machine: better than by chance, near the best known, none twice, within bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.synthetic_search import CONVOLUTION
from workers.engine import informed
from workers.engine.gpu import Bounds, Gpu
from workers.engine.history import SketchHistory
from workers.engine.informed import InformedDraws
from workers.engine.machine import Machine
from workers.engine.rules import rules_penalty
from workers.engine.space import Choices, Knob, Sketch, tilings
from workers.landscapes import SpaceRecording

MACHINE = Machine(lanes=8, registers=16, cores=2)
RECORDED = Path("workers/landscapes/recorded/amd-epyc-zen4")
TURNS, PLAN = 200, 8
"""Plans drawn of every recorded part: the means below stand to 0.01."""
LEFT = 0.7
"""What is left of chance's distance to the fastest there is, geometric mean of the recorded parts: 0.48, by rules turned round
2.6, and by the right ones for vectors half as wide 1.6."""


def known(*rows: Choices) -> SketchHistory:
    """The first is the fastest."""
    seen = SketchHistory()
    for place, row in enumerate(rows):
        seen.choices.append(tuple(row.tolist()))
        seen.speeds.append(1.0 / (1 + place))
    return seen


def drawn(
    count: int,
    seen: SketchHistory | None = None,
    machine: Machine | Gpu = MACHINE,
    seed: int = 0,
    sketch: Sketch = CONVOLUTION,
) -> Choices:
    draws = InformedDraws(sketch, machine, seen or SketchHistory())
    return draws.unvisited(np.random.default_rng(seed), count, set())


def chance() -> Choices:
    return CONVOLUTION.random(np.random.default_rng(1), 400)


def test_rules_are_broken_less_than_by_chance() -> None:
    anywhere = rules_penalty(CONVOLUTION, drawn(40), MACHINE)
    assert np.median(anywhere) < np.quantile(rules_penalty(CONVOLUTION, chance(), MACHINE), 0.05)


def test_half_are_near_the_fastest_known() -> None:
    slow, fast = chance()[:2]
    found = drawn(64, known(*[fast] * informed.BEST, *[slow] * 4))
    near, far = ((found != one).sum(axis=1) <= informed.MOVES for one in (fast, slow))
    assert 24 <= near.sum() <= 40
    assert far.sum() < 4
    assert len(np.unique(found, axis=0)) == len(found)


def test_of_single_ones_every_other_is_from_anywhere() -> None:
    """After the first plan hardly more than one a plan is random."""
    fast = chance()[0]
    drawn_once = [drawn(1, known(fast), seed=seed) for seed in range(100)]
    near = [(one != fast).sum() <= informed.MOVES for one in drawn_once]
    assert 30 < sum(near) < 70


def test_what_failed_is_no_neighbourhood() -> None:
    failed = known(chance()[0])
    failed.speeds = [0.0]
    assert np.array_equal(drawn(16, failed), drawn(16))


def test_rules_that_say_nothing_are_not_asked() -> None:
    """Of a pooling: the location that is usual is no faster."""
    places = tuple((place,) for place in range(-2, 40))
    pooling = Sketch((Knob("location0", "location", places), Knob("location1", "location", places)))
    found = drawn(200, sketch=pooling)
    assert (found == 1).mean() < 0.1, "neither at the root, which first configurations take"


def test_they_are_the_same_every_time() -> None:
    seen = known(*chance()[:3])
    assert np.array_equal(drawn(16, seen), drawn(16, seen))
    assert not np.array_equal(drawn(16, seen), drawn(16, seen, seed=1))


def test_a_small_sketch_is_used_up_and_nothing_comes_twice() -> None:
    small = Sketch(
        (Knob("unroll", "category", tuple((value,) for value in range(7))), Knob("tile", "tile", tilings(6, 4)))
    )
    draws, visited = InformedDraws(small, MACHINE, SketchHistory()), set[tuple[int, ...]]()
    rng = np.random.default_rng(0)
    while len(rows := draws.unvisited(rng, 5, visited)):
        assert visited.isdisjoint(map(tuple, rows.tolist()))
        visited |= set(map(tuple, rows.tolist()))
    assert len(visited) == small.size


def test_one_without_a_knob_that_moves_has_one() -> None:
    alone = Sketch((Knob("structure", "category", ((0,),)),))
    assert drawn(4, known(np.zeros(1, dtype=np.int32)), sketch=alone).tolist() == [[0]]


def test_a_gpus_are_within_its_bounds() -> None:
    bounds = Bounds(1024, 49152)
    spatial = (Knob(f"t{extent}", "tile", tilings(extent, 5)) for extent in (64, 256))
    sketch = Sketch((*spatial, Knob("k", "tile", tilings(64, 3))), bounds)
    found = drawn(32, known(*sketch.random(np.random.default_rng(2), 2)), Gpu(16, bounds), sketch=sketch)
    assert len(sketch.runnable(found)) == len(found) == 32


def places(sketch: Sketch, rows: Choices) -> NDArray[np.intp]:
    """Of choices in the order of `Sketch.grid`."""
    return np.ravel_multi_index(tuple(rows.T), tuple(sketch.sizes))


def left_of_chance(machine: Machine | None = None) -> float:
    """Of the distance between the best of a plan by chance and the fastest there is, geometric mean of the parts."""
    found = []
    for path in sorted(RECORDED.glob("*.space.npz")):
        for part in SpaceRecording.read(path).parts:
            sketch, true = part.operator.sketches[0], np.log(part.true / part.true.min())
            assert part.operator.machine is not None
            draws = InformedDraws(sketch, machine or part.operator.machine, SketchHistory())
            rng = np.random.default_rng(0)

            by_rules, by_chance = (
                np.mean([true[places(sketch, way.unvisited(rng, PLAN, set()))].min() for _ in range(TURNS)])
                for way in (draws, sketch)
            )
            found.append(np.log(by_rules / by_chance))
    return float(np.exp(np.mean(found)))


def test_the_best_of_a_plan_is_nearer_to_the_fastest_there_is_than_by_chance() -> None:
    assert left_of_chance() < LEFT


@pytest.mark.mutation
def test_mutation_rules_turned_round_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informed, "rules_penalty", lambda *asked: -rules_penalty(*asked))
    assert left_of_chance() > 1.0


@pytest.mark.mutation
def test_mutation_another_machine_is_noticed() -> None:
    """Its vectors and registers are what the rules are about."""
    assert left_of_chance(MACHINE) > 1.0
