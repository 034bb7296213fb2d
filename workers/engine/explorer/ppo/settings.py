"""The numbers of the reinforcement-learning explorer."""

from __future__ import annotations

from dataclasses import dataclass

DIRECTIONS = 3
"""Decrement, stay, increment."""


@dataclass(frozen=True)
class Settings:
    """Names of Chameleon's Tables 7 and 9. The methods `chameleon-paper` and `-program` have the tables' numbers and those of
    the authors' program. The defaults are what learned fastest on trees and on a smooth score, of those that take a fifth of
    a second a call.

    A call walks `episodes`, `together` of them at a time, each at most `steps` long (paper: 500), and learns after each
    group; the paper does not say how often it learns. Adam's `rate`, `discount`, GAE parameter `gae`, `epochs` over
    each group in minibatches of `minibatch` (not in the paper), `clip`, `value` and `entropy` coefficients. `spread` is
    what the entropy is of: "knob", the mean over knobs, 1 when all directions are equally likely, or "action", the sum over
    knobs in nats (the whole action's, as in Schulman et al., and the program's).

    `ratio`: "joint" is the probability ratio of a whole action (Schulman et al., 2017), "knob" clips a ratio for each
    knob and sums the surrogates (program). `still` ends an episode when that share of its knobs stays or is sent to a
    bound and reaches it (program: 0.75; paper: none). `reward`: "speed" is the estimate itself, relative to the group's
    best, "log" its logarithm, from the group's worst to its best. `hidden` units in the shared layer (paper: found by
    search, not said). `elite` episodes begin at the best-scored visited configurations instead of at random, and
    `exhaustive` scores a sketch with no more configurations than a call would look at completely: both off in the paper.
    """

    episodes: int = 128
    together: int = 32
    steps: int = 64
    rate: float = 3e-3
    discount: float = 0.9
    gae: float = 0.99
    epochs: int = 3
    minibatch: int = 128
    clip: float = 0.3
    value: float = 1.0
    entropy: float = 0.01
    spread: str = "knob"
    ratio: str = "knob"
    still: float | None = None
    reward: str = "log"
    hidden: int = 32
    elite: float = 0.25
    exhaustive: bool = True

    def __post_init__(self) -> None:
        counts = (self.episodes, self.together, self.steps, self.epochs, self.minibatch, self.hidden)
        if fractions := [count for count in counts if not isinstance(count, int)]:
            raise ValueError(f"{fractions[0]} must be a whole number, as episodes, steps and all that PPO counts")
        if min(counts) < 1:
            raise ValueError("episodes, together, steps, epochs, minibatch and hidden start at 1")
        if not (0 <= self.discount < 1 and 0 <= self.gae <= 1 and 0 <= self.elite <= 1):
            raise ValueError("discount is from 0 to below 1, gae and elite from 0 to 1")
        if min(self.rate, self.clip) <= 0 or min(self.value, self.entropy) < 0:
            raise ValueError("rate and clip are above 0, value and entropy at least 0")
        if self.ratio not in ("joint", "knob") or self.reward not in ("log", "speed"):
            raise ValueError("ratio is joint or knob, reward log or speed")
        if self.spread not in ("action", "knob"):
            raise ValueError("spread is action or knob")
        if self.still is not None and not 0 < self.still <= 1:
            raise ValueError("still is None or a share above 0 and up to 1")

    def shapes(self, knobs: int) -> list[tuple[int, ...]]:
        """Of an agent's weights: shared layer, policy, value; each a matrix and a bias."""
        outputs = knobs * DIRECTIONS
        return [(knobs, self.hidden), (self.hidden,), (self.hidden, outputs), (outputs,), (self.hidden, 1), (1,)]
