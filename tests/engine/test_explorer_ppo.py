"""The reinforcement-learning explorer: it learns, ends episodes as told, and keeps a small state."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.synthetic_search import CONVOLUTION
from workers.engine.explorer import PPO
from workers.engine.explorer.ppo import Settings
from workers.engine.methods import METHODS
from workers.engine.ports import Explorer
from workers.engine.space import Choices, Knob, Sketch

PAPER, PROGRAM = (METHODS[f"chameleon-{of}"].parameters["explorer"] for of in ("paper", "program"))
SMOOTH = Sketch(tuple(Knob(f"k{i}", "category", tuple((v,) for v in range(16))) for i in range(6)))
TOP = np.asarray([1, 14, 3, 12, 5, 9])
SEEDS = range(4)


def smooth(choices: Choices) -> NDArray[np.float64]:
    """Log2 speed: falls with the square of the distance from the top, to -7 on average."""
    found: NDArray[np.float64] = -np.square((choices - TOP) / 6.0).sum(axis=1)
    return found


def nothing(choices: Choices) -> NDArray[np.float64]:
    return np.zeros(len(choices))


class Unrewarded(PPO):
    """Walks and scores as ever, and learns from zeros."""

    def _rewards(self, scores: NDArray[np.float64], walked: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.zeros_like(scores)


def reached(kind: type[PPO], seed: int, calls: int = 3) -> float:
    """Mean over calls of the mean score of the 64 best configurations met."""
    explorer = kind(np.random.default_rng(seed), steps=32, exhaustive=False, elite=0.0)
    return float(np.mean([smooth(explorer.explore(SMOOTH, smooth, 64, set())[0]).mean() for _ in range(calls)]))


def drawn(seed: int, calls: int = 3) -> float:
    """The same by random draws, as many as the explorer scores."""
    rng = np.random.default_rng(seed)
    return float(np.mean([np.sort(smooth(SMOOTH.random(rng, 128 * 33)))[-64:].mean() for _ in range(calls)]))


def wins(kind: type[PPO]) -> int:
    """Seeds of four on which learning beats random draws at equal evaluations by three tenths of a doubling.

    Measured on 6 seeds: -0.54 to -0.34 against -1.03 to -0.94 for random draws; with rewards of zero -1.5 to -0.8. One
    seed is left to another machine's rounding.
    """
    return sum(reached(kind, seed) > drawn(seed) + 0.3 for seed in SEEDS)


def test_learns_to_beat_random_draws_at_equal_evaluations() -> None:
    assert wins(PPO) >= 3


@pytest.mark.mutation
def test_mutation_without_reward_it_loses() -> None:
    assert wins(Unrewarded) <= 1


def test_what_was_learned_stays_from_call_to_call() -> None:
    """Mean score over all steps of a call: a random walk's is about -7, after five calls it was -1.2."""

    def means(explorer: Explorer, calls: int) -> list[float]:
        seen: list[list[float]] = []

        def watched(choices: Choices) -> NDArray[np.float64]:
            seen[-1].extend(smooth(choices).tolist())
            return smooth(choices)

        for _ in range(calls):
            seen.append([])
            explorer.explore(SMOOTH, watched, 8, set())
        return [float(np.mean(one)) for one in seen]

    first, *_, last = means(PPO(np.random.default_rng(0), exhaustive=False, elite=0.0, steps=32), 5)
    assert last > first / 2


@pytest.mark.parametrize("settings", [PAPER, PROGRAM], ids=["paper", "program"])
def test_the_papers_settings_walk(settings: dict[str, Any]) -> None:
    explorer = PPO(np.random.default_rng(0), **settings | {"episodes": 8, "together": 4, "steps": 20})
    found, steps = explorer.explore(CONVOLUTION, nothing, 8, set())
    assert len(found) == 8
    assert 2 <= steps <= 40


def test_the_papers_settings_are_its_tables() -> None:
    numbers = PPO(np.random.default_rng(0), **PAPER)._settings
    assert (numbers.episodes, numbers.steps) == (128, 500)
    assert (numbers.rate, numbers.discount, numbers.gae, numbers.epochs) == (1e-3, 0.9, 0.99, 3)
    assert (numbers.clip, numbers.value, numbers.entropy) == (0.3, 1.0, 0.1)
    program = PPO(np.random.default_rng(0), **PROGRAM)._settings
    assert (program.clip, program.entropy, program.still, program.ratio) == (0.2, 0.3, 0.75, "knob")


def test_actions_are_drawn_with_the_chances_of_the_policy_that_learns() -> None:
    """Before and after an update: who acts and who learns are written twice. One in a thousand lies on an edge."""
    import torch

    from workers.engine.explorer.ppo.agent import Agent, Experience

    rng, settings = np.random.default_rng(0), Settings(hidden=8, rate=0.1)
    agent = Agent([rng.standard_normal(shape).astype(np.float32) for shape in settings.shapes(5)], settings)
    states, luck = rng.uniform(-1, 1, (400, 5)).astype(np.float32), rng.random((400, 5), dtype=np.float32)
    drawn = []
    for _ in range(2):
        with torch.inference_mode():
            edges = torch.softmax(agent._forward(torch.from_numpy(states))[0], dim=2).cumsum(dim=2).numpy()
        drawn.append(agent.act(states, luck))
        assert (drawn[-1] == (luck[:, :, None] >= edges[:, :, :2]).sum(axis=2)).mean() > 0.999
        ones = np.ones(400, dtype=np.float32)
        agent.learn(Experience(states, drawn[-1], ones, ones), [rng.permutation(400)])
    assert set(drawn[0].ravel()) == {0, 1, 2}
    assert (drawn[0] != drawn[1]).mean() > 0.01


def test_an_episode_ends_when_its_knobs_stay() -> None:
    """With a share that any step reaches, each episode is one step long, whose advantage has no spread."""
    narrow = Sketch(tuple(Knob(f"k{i}", "category", ((0,), (1,))) for i in range(20)))
    explorer = PPO(np.random.default_rng(0), still=0.01, together=1, episodes=4, exhaustive=False)
    found, steps = explorer.explore(narrow, lambda choices: choices.sum(axis=1).astype(np.float64), 4, set())
    assert steps == 4
    assert len(found) == 4
    assert all(np.isfinite(weight).all() for weight in explorer._weights)


def test_a_knob_that_reaches_the_bound_it_was_sent_to_counts_as_one_that_stays() -> None:
    """A knob of two options is always at a bound it was sent to or where it was: every episode is one step long, even
    when all knobs are asked for."""
    narrow = Sketch(tuple(Knob(f"k{i}", "category", ((0,), (1,))) for i in range(20)))
    explorer = PPO(np.random.default_rng(0), still=1.0, together=1, episodes=4, steps=30, exhaustive=False)
    assert explorer.explore(narrow, nothing, 4, set())[1] == 4
    wide = PPO(np.random.default_rng(0), still=1.0, together=1, episodes=4, steps=30, exhaustive=False)
    assert wide.explore(SMOOTH, nothing, 4, set())[1] > 4


def test_steps_past_an_early_end_are_neither_scored_nor_offered() -> None:
    explorer = PPO(np.random.default_rng(1), still=0.5, episodes=32, together=32, exhaustive=False)
    scored: list[int] = []

    def watched(choices: Choices) -> NDArray[np.float64]:
        scored.append(len(choices))
        return smooth(choices)

    _, steps = explorer.explore(SMOOTH, watched, 8, set())
    assert sum(scored) == explorer.figures["evaluations"] < 32 * (steps + 1)


def test_figures_say_how_soon_the_best_was_met() -> None:
    explorer = PPO(np.random.default_rng(0), steps=32, exhaustive=False)
    _, steps = explorer.explore(SMOOTH, smooth, 8, set())
    figures = explorer.figures
    assert figures["evaluations"] == 128 * 33
    assert figures["steps_to_best"] <= steps + 4
    assert figures["evaluations_to_best"] <= figures["evaluations"]
    explorer.explore(SMOOTH, nothing, 8, set())
    assert explorer.figures["steps_to_best"] == 0


def test_a_state_is_small_exact_and_needs_its_own_settings() -> None:
    explorer = PPO(np.random.default_rng(0), steps=8)
    explorer.explore(CONVOLUTION, nothing, 8, set())
    state = json.dumps(explorer.state())
    assert len(state) < 10_000
    twin = PPO(np.random.default_rng(1), steps=8)
    twin.restore(json.loads(state))
    assert json.dumps(twin.state()) == state
    with pytest.raises(ValueError, match="restore it with the settings"):
        PPO(np.random.default_rng(1), hidden=64).restore(json.loads(state))


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"discount": 1.0}, {"clip": 0.0}, {"ratio": "both"}, {"still": 2.0}])
def test_bad_numbers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PPO(np.random.default_rng(0), **wrong)
