"""The walk of the reinforcement-learning explorer."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.checkpoint import pack_generator, unpack_generator
from workers.engine.explorer.pool import Pool
from workers.engine.explorer.ppo.settings import Settings
from workers.engine.explorer.starts import elites, exhaust
from workers.engine.explorer.trace import Trace
from workers.engine.ports import Score, State
from workers.engine.space import Choices, Sketch

if TYPE_CHECKING:
    from workers.engine.explorer.ppo.agent import Agent, Experience

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Episodes:
    """A group of e episodes over m movable knobs.

    `points` (t + 1, e, k) are the configurations, the start first; `actions` (t, e, m) in 0..2; `alive` (t + 1, e) says
    which episodes had not ended before each step, and after the last.
    """

    points: Choices
    actions: NDArray[np.int64]
    alive: NDArray[np.bool_]

    @property
    def walked(self) -> NDArray[np.bool_]:
        """Which steps (t, e) belong to an episode that had not ended."""
        return self.alive[:-1]


class PPO:
    """Chameleon's Adaptive Exploration (3.2): an agent learns which knobs to turn, and keeps what it learned.

    The state is the knobs' indices scaled by their sizes, an action decrements, keeps or increments every knob at once,
    the reward is the cost model's estimate for the configuration reached. Episodes of a group walk together, and are
    scored together after their end. An explorer walks one sketch and begins with a new agent when given another.

    A state holds the agent's weights only, 32 bit each: 1,700 numbers or 9 kB of JSON for 12 knobs. Adam's moments would
    triple that at every checkpoint of every sketch, so the optimiser starts anew with each call, some hundred updates.
    `figures` count the steps of a group as one.
    """

    def __init__(self, rng: np.random.Generator, **settings: Any) -> None:
        self._rng = rng
        self._settings = Settings(**settings)
        self._sizes: list[int] = []
        self._weights: list[Floats] = []
        self.figures: dict[str, int] = {}
        self.begun: Choices | None = None

    def explore(self, sketch: Sketch, score: Score, count: int, visited: set[tuple[int, ...]]) -> tuple[Choices, int]:
        pool = Pool(count, len(sketch.knobs), visited)
        numbers = self._settings
        if whole := exhaust(sketch, score, pool, numbers.episodes * numbers.steps if numbers.exhaustive else 0):
            self.figures, self.begun = whole.figures, None
            return pool.rows, 1
        # Torch takes a second and 200 MB to load: only runs that use it pay.
        from workers.engine.explorer.ppo.agent import Agent

        self._fit_to(sketch)
        agent, trace, steps = Agent(self._weights, numbers), Trace(), 0
        starts, first = self._starts(sketch, score, visited), Pool(count, len(sketch.knobs), visited)
        for group in np.split(starts, range(numbers.together, len(starts), numbers.together)):
            episodes = self._walk(sketch, agent, group)
            scores = _scored(score, episodes, pool, first, trace)
            self._learn(sketch, agent, episodes, scores)
            steps += len(episodes.actions)
        self._weights = agent.weights
        self.figures, self.begun = trace.figures, first.rows
        return pool.rows, steps

    def _fit_to(self, sketch: Sketch) -> None:
        """A new agent unless this sketch is the known one; at first all directions are nearly equally likely."""
        sizes = sketch.sizes.tolist()
        if sizes == self._sizes:
            return
        self._sizes = sizes
        self._weights = []
        scales = (1.0, 0.0, 0.01, 0.0, 1.0, 0.0)
        movable = int((sketch.sizes > 1).sum())
        for shape, scale in zip(self._settings.shapes(movable), scales, strict=True):
            spread = scale / math.sqrt(shape[0])
            self._weights.append((spread * self._rng.standard_normal(shape)).astype(np.float32))

    def _starts(self, sketch: Sketch, score: Score, visited: set[tuple[int, ...]]) -> Choices:
        """The first points of all episodes; the elite are spread over the groups."""
        starts = sketch.random(self._rng, self._settings.episodes)
        best = elites(sketch, score, visited, int(self._settings.elite * len(starts)))
        starts[self._rng.permutation(len(starts))[: len(best)]] = best
        return starts

    def _walk(self, sketch: Sketch, agent: Agent, starts: Choices) -> Episodes:
        movable = np.flatnonzero(sketch.sizes > 1)
        top = sketch.sizes[movable] - 1
        luck = self._rng.random((self._settings.steps, len(starts), movable.size), dtype=np.float32)
        alive = np.ones(len(starts), dtype=np.bool_)
        points, actions, lives = [starts], [], [alive]
        for chance in luck:
            here = points[-1][:, movable]
            action = agent.act(_scaled(here, top), chance)
            there = np.clip(here + (action - 1), 0, top)
            reached = points[-1].copy()
            reached[alive[:, None] & (sketch.sizes > 1)] = there[alive].ravel()
            points.append(reached)
            actions.append(action)
            if self._settings.still is not None:
                alive = alive & (_settled(there, action, top).mean(axis=1) < self._settings.still)
            lives.append(alive)
            if not alive.any():
                break
        return Episodes(np.stack(points), np.stack(actions), np.stack(lives))

    def _learn(self, sketch: Sketch, agent: Agent, episodes: Episodes, scores: NDArray[np.float64]) -> None:
        movable = np.flatnonzero(sketch.sizes > 1)
        states = _scaled(episodes.points[:, :, movable], sketch.sizes[movable] - 1)
        values = agent.values(states.reshape(-1, movable.size)).reshape(states.shape[:2])
        rewards = self._rewards(scores, episodes.walked)
        advantages = self._advantages(rewards, values, episodes.alive[1:])
        experience = self._experience(states[:-1], episodes, advantages, values[:-1])
        size = len(experience.advantages)
        agent.learn(experience, [self._rng.permutation(size) for _ in range(self._settings.epochs)])

    def _rewards(self, scores: NDArray[np.float64], walked: NDArray[np.bool_]) -> NDArray[np.float64]:
        """From 0 to 1 - discount, so that the critic's sums stay within 0 to 1; positive, for an episode's early end
        must not be a way to avoid them."""
        known = scores[walked]
        if self._settings.reward == "speed":
            rewards = np.exp2(scores - known.max())
        else:
            rewards = (scores - known.min()) / max(float(np.ptp(known)), 1e-9)
        return np.where(walked, (1 - self._settings.discount) * rewards, 0.0)

    def _advantages(
        self, rewards: NDArray[np.float64], values: Floats, goes_on: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Generalised advantage estimates (t, e). Where an episode goes on, after its last possible step too, the critic
        says what is left; past an early end there is nothing."""
        advantages = np.zeros_like(rewards)
        later = np.zeros(rewards.shape[1])
        for t in reversed(range(len(rewards))):
            ahead = goes_on[t] * values[t + 1]
            surprise = rewards[t] + self._settings.discount * ahead - values[t]
            later = surprise + self._settings.discount * self._settings.gae * goes_on[t] * later
            advantages[t] = later
        return advantages

    def _experience(
        self, states: Floats, episodes: Episodes, advantages: NDArray[np.float64], values: Floats
    ) -> Experience:
        from workers.engine.explorer.ppo.agent import Experience

        walked = episodes.walked
        known = advantages[walked]
        # One step, or equal estimates everywhere, have no spread: they teach the critic only.
        spread = float(known.std())
        scaled = (known - known.mean()) / spread if spread > 1e-9 else np.zeros_like(known)
        returns = known + values[walked]
        return Experience(
            states[walked], episodes.actions[walked], scaled.astype(np.float32), returns.astype(np.float32)
        )

    def state(self) -> State:
        raw = b"".join(np.ascontiguousarray(weight, dtype="<f4").tobytes() for weight in self._weights)
        packed = base64.b64encode(raw).decode("ascii")
        return {"rng": pack_generator(self._rng), "sizes": list(self._sizes), "weights": packed}

    def restore(self, state: State) -> None:
        """ValueError for the weights of a net of another size."""
        unpack_generator(self._rng, state["rng"])
        self._sizes = list(state["sizes"])
        flat = np.frombuffer(base64.b64decode(state["weights"]), dtype="<f4").astype(np.float32)
        movable = sum(size > 1 for size in self._sizes)
        wanted = self._settings.shapes(movable) if self._sizes else []
        edges = np.cumsum([0] + [math.prod(shape) for shape in wanted])
        if len(flat) != edges[-1]:
            raise ValueError(
                f"the state has {len(flat)} weights, {self._settings.hidden} hidden units and {movable} knobs make "
                f"{edges[-1]}; restore it with the settings it was taken from"
            )
        self._weights = [flat[a:b].reshape(s) for a, b, s in zip(edges[:-1], edges[1:], wanted, strict=True)]


def _settled(there: Choices, action: NDArray[np.int64], top: Choices) -> NDArray[np.bool_]:
    """Which knobs stayed, or are at the bound that they were sent to: in `there` (e, m) by `action` (e, m)."""
    found: NDArray[np.bool_] = (action == 1) | ((action == 0) & (there == 0)) | ((action == 2) & (there == top))
    return found


def _scaled(choices: Choices, top: Choices) -> Floats:
    """Indices from 0 to `top` as -1 to 1."""
    return (2.0 * choices / top - 1.0).astype(np.float32)


def _scored(score: Score, episodes: Episodes, pool: Pool, starts: Pool, trace: Trace) -> NDArray[np.float64]:
    """Scores (t, e) of the configurations reached, 0 where an episode was over; everything met goes into the pool, and
    what the episodes began with into `starts` too."""
    points, walked = episodes.points, episodes.walked
    met = score(np.concatenate([points[0], points[1:][walked]]))
    first = len(points[0])
    for kept in (pool, starts):
        kept.offer(points[0], met[:first])
    trace.step(pool, first)
    scores = np.zeros(walked.shape)
    scores[walked] = met[first:]
    for reached, values, alive in zip(points[1:], scores, walked, strict=True):
        pool.offer(reached[alive], values[alive])
        trace.step(pool, int(alive.sum()))
    return scores
