"""Simulated annealing: what it adds to the contract of explorers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.synthetic_search import CONVOLUTION, TINY
from workers.engine.checkpoint import unpack_choices
from workers.engine.explorer import SimulatedAnnealing
from workers.engine.explorer.pool import Pool
from workers.engine.explorer.starts import elites
from workers.engine.space import Choices, Knob, Sketch

TARGET = CONVOLUTION.random(np.random.default_rng(99), 1)[0]
SEEDS = range(5)


def closeness(choices: Choices) -> NDArray[np.float64]:
    return -np.abs(choices - TARGET).sum(axis=1).astype(np.float64)


def nearer(**settings: Any) -> bool:
    """The gate: a walk comes to a quarter of the distance of as many random draws, in the median of the seeds."""
    shares = []
    for seed in SEEDS:
        explorer = SimulatedAnnealing(np.random.default_rng(seed), **settings)
        found, _ = explorer.explore(CONVOLUTION, closeness, 16, set())
        drawn = CONVOLUTION.random(np.random.default_rng(seed), explorer.figures["evaluations"])
        shares.append(closeness(found).max() / closeness(drawn).max())
    return float(np.median(shares)) < 0.25


def test_comes_nearer_than_as_many_random_draws() -> None:
    assert nearer()


@pytest.mark.mutation
def test_mutation_a_walk_that_takes_every_step_comes_no_nearer() -> None:
    assert not nearer(hot=1e9)


def adds_up(anew: bool = False) -> bool:
    """The gate: the last of 15 short calls comes to half of the distance of the first, in the median of the seeds. A mutation
    gives each call an explorer of its own."""
    shares = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        explorer, reached = SimulatedAnnealing(rng, steps=20, elite=0.0), []
        for _ in range(15):
            explorer = SimulatedAnnealing(rng, steps=20, elite=0.0) if anew else explorer
            reached.append(closeness(explorer.explore(CONVOLUTION, closeness, 4, set())[0]).max())
        shares.append(reached[-1] / reached[0])
    return float(np.median(shares)) < 0.5


def test_chains_persist_so_that_short_calls_add_up() -> None:
    assert adds_up()


@pytest.mark.mutation
def test_mutation_chains_that_begin_anew_add_nothing_up() -> None:
    assert not adds_up(anew=True)


def test_stops_early_when_the_best_do_not_change() -> None:
    explorer = SimulatedAnnealing(np.random.default_rng(0), steps=500, patience=10)
    _, steps = explorer.explore(CONVOLUTION, lambda choices: np.zeros(len(choices)), 4, set())
    assert steps == 10


def test_a_small_sketch_is_scored_whole() -> None:
    def last_is_best(choices: Choices) -> NDArray[np.float64]:
        return choices @ np.asarray([2.0, 1.0])

    found, steps = SimulatedAnnealing(np.random.default_rng(0)).explore(TINY, last_is_best, 2, {(2, 1)})
    assert found.tolist() == [[2, 0], [1, 1]]
    assert steps == 1


def test_elite_chains_start_from_the_best_visited() -> None:
    near = TARGET.copy()
    near[0] = (near[0] + 1) % CONVOLUTION.sizes[0]
    explorer = SimulatedAnnealing(np.random.default_rng(0), chains=4, steps=1, elite=0.25)
    found, _ = explorer.explore(CONVOLUTION, closeness, 1, {tuple(int(v) for v in near)})
    assert np.count_nonzero(found[0] != near) == 1


def test_without_heat_a_chain_never_goes_down() -> None:
    explorer = SimulatedAnnealing(np.random.default_rng(0), chains=1, steps=200, patience=200, hot=0.0)
    seen: list[float] = []

    def watched(choices: Choices) -> NDArray[np.float64]:
        seen.append(float(closeness(choices)[0]))
        return closeness(choices)

    explorer.explore(CONVOLUTION, watched, 1, set())
    first = seen[0]
    explorer.explore(CONVOLUTION, watched, 1, set())
    assert seen[201] >= max(seen[:201]) >= first


@pytest.mark.parametrize(
    ("differences", "forgiven"), [("log", np.exp(-6.0)), ("speed", np.exp(-63 / 64)), ("flops", 0.0)]
)
def test_the_temperature_is_of_log_speeds_or_of_speeds(differences: str, forgiven: float) -> None:
    """The first step of 4,000 chains, at temperature 1, offers half of those at the best a 64th of its speed: within 3 standard
    errors as many go there as a loss of 6 doublings, or of 63 / 64 of the best, is forgiven; of so many FLOP/s none is."""
    best_or_slow = Sketch((Knob("unroll", "category", ((0,), (64,))),))
    settings = {"chains": 4000, "steps": 1, "elite": 0.0, "exhaustive": False}
    explorer = SimulatedAnnealing(np.random.default_rng(0), differences=differences, **settings)
    scored: list[Choices] = []

    def score(choices: Choices) -> NDArray[np.float64]:
        scored.append(choices)
        return -6.0 * choices[:, 0]

    explorer.explore(best_or_slow, score, 1, set())
    begun, offered, reached = scored[0][:, 0], scored[1][:, 0], unpack_choices(explorer.state()["points"])[:, 0]
    falls = (begun == 0) & (offered == 1)
    assert reached[falls].mean() == pytest.approx(forgiven, abs=3 * np.sqrt(forgiven / falls.sum()))
    assert reached[~falls].tolist() == offered[~falls].tolist()


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="chains, steps and patience"):
        SimulatedAnnealing(np.random.default_rng(0), chains=0)
    with pytest.raises(ValueError, match="log, speed"):
        SimulatedAnnealing(np.random.default_rng(0), differences="none")


def test_the_pool_equals_sorting_everything() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 3, size=(400, 6), dtype=np.int32)
    weights = rng.normal(size=6)
    visited = set(map(tuple, rows[:20].tolist()))
    pool = Pool(25, 6, visited)
    for batch in np.split(rows, 8):
        pool.offer(batch, batch @ weights)
    everything = {row: float(np.asarray(row) @ weights) for row in map(tuple, rows.tolist()) if row not in visited}
    assert pool.scores == pytest.approx(sorted(everything.values(), reverse=True)[:25])
    assert len({tuple(row) for row in pool.rows.tolist()}) == 25


def test_every_move_changes_one_knob() -> None:
    asked: list[Choices] = []
    explorer = SimulatedAnnealing(np.random.default_rng(0), chains=16, steps=20, hot=0.0, elite=0.0)
    explorer.explore(CONVOLUTION, lambda choices: asked.append(choices) or np.full(len(choices), -len(asked)), 4, set())
    begun, *moved = asked  # each is scored below the ones before, and no move is taken
    assert len(moved) == 20
    assert all((np.count_nonzero(points != begun, axis=1) == 1).all() for points in moved)


def test_walks_begin_at_the_same_elites_in_whatever_order_these_were_visited() -> None:
    """Equals come by their choices: a run that goes on has another order in its sets."""
    rows = [tuple(row) for row in CONVOLUTION.random(np.random.default_rng(3), 400).tolist()]
    known = np.asarray(sorted(set(rows)), dtype=np.int32)
    best = known[np.argsort(-closeness(known), kind="stable")]
    assert len(set(closeness(best))) < len(best), "there are equals"
    for told in (rows, rows[::-1]):
        assert (elites(CONVOLUTION, closeness, set(told), 64) == best[:64]).all()
