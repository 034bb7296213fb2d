"""The numbers of the schedulers that ask the belief, and what the paper and its program say about each.

The paper's rule is `PAPER_RULE`. What goes beyond the text of DynaTune there, and why:
  t        The bonus takes ln t of the slot to come, t = slots so far + 1, as Algorithm 1 counts.
  gamma    Operators that never had a slot all have the constant; the text leaves their order open. The largest share of
           the latency goes first.
           Open, the product's rule judges such an operator by what is known of it: its share of the latency and how far
           its first configuration is from its ceiling (`first_slot`). Of SqueezeNet's 44 operators sixteen hold 5 % of
           the time: their first slots can wait.
  rescue   The paper warms up until each operator has a valid configuration; if one has none by then, it goes first for
           `rescue` slots more than the others.
  work     r divides `Operator.work`, which is the paper's FLOPs where they are what limits (`Operator`).
  weight   r is multiplied by it (footnote 3).
  prior    A segment of fewer than 5 configurations has a normal prior from the segment before, or a broad one; the
           paper's uniform prior (which longer segments have) leaves such a fit undetermined.
  noise    Of the observations is sampled with the parameters ("all free parameters are taken care of by MCMC").
  ahead    A forecast is for the end of the slot: slot length over the mean time of a configuration (program).
  finished After 200 configurations without improvement (5.3); the program stops after 50. Those count that were proposed,
           measured or not (`stale`): the papers' programs measure again what they know. The product waits for 400, since
           large products gained after 200 that brought nothing, and does not end then: when all that are left are
           finished, so many configurations are twice as many, and so on.
  ceiling  A curve ends at the target's peak, which what is measured raises. What comes within a tenth of it, or over it
           because its bytes come from a cache, has a ceiling of its own, a ninth over what it reached. Before its first slot
           what moves bytes may come to what the fastest such operator has: AlexNet's second pooling was a tenth over the
           memory's bandwidth, was never tried, and takes half of that time from a cache.
  rise     A staircase's first steps leave a curve over the best at the end of a long plateau, by the more the longer it is;
           the improvement over the best then grows with every slot that brings nothing. The product's reward is what the
           curve gains from now on.
  score    The paper's is the expected improvement. The program's is the predicted speed itself, of an operator whatever its
           weight and its share of the latency, and its bonus 1 GFLOP/s, with C = 2 always: `score` "speed", `c_fast` 2.
           Its UCB1Selector takes ln of all slices, those of the warm-up too, which count in c as well, and has no gamma. Here t
           and c are of the slots after the warm-up under this score too, t = slots so far + 1, and gamma goes first.
  bound    The paper's prior forbids a curve that ends under the best: at the horizon, where the slot to come ends. The
           program's constraint, off by default, is on the curve at the last configuration observed and against that; else it
           has no prior but limits of the parameters: `prior` off.
  pieces   The paper cuts a curve at jumps; the program fits all of it, `pieces` off. Its script asks no posterior either: of
           the curve pow2 it takes the least squares alone, later points weighing more. Here its belief is sampled as the
           paper's, with the paper's curve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from workers.engine.belief import FAST, PAPER, Sampling, curve_named
from workers.engine.scheduler.standing import counted

GAMMA = 1e12
"""Index in ms of an operator that never had a slot: above anything an estimate can reach."""

TERMS = {"improvement": ("r_ms", "bonus_ms", "operators"), "speed": ("speed_gflops", "bonus_gflops", "gflops")}
"""By score, what a decision's terms call the score, the bonus, and both of all operators."""


@dataclass(frozen=True)
class Rule:
    """The parameters of the index u = r + scale x sqrt(C ln t / c), in ms.

    `score` is what stands for r:
      "improvement"  the latency that a slot is expected to take off the network (DynaTune 4.2).
      "speed"        the speed that the operator is predicted to have after a slot, in GFLOP/s (program). The bonus is then
                     of 1 GFLOP/s, for which `scale` is "millisecond" too: one of the unit.
    `scale` is the size of a reward, which Auer et al. (2002) take to be at most 1:
      "millisecond"  1 ms whatever the network: DynaTune's rule as written.
      "spread"       the standard deviation of the operator's own reward, the factor of UCB1-NORMAL (Auer et al. 2002)
                     and UCB-V (Audibert et al. 2009), in ms. It joins the posterior's spread, what the curve may still
                     do, and that of a jump, which no curve foresees: a jump takes `surprise` of the operator's time
                     off (1/6 at 20 % faster, 1/3 at 50 %) with probability p, so its spread is
                     `surprise` x sqrt(p (1 - p)) x weight x best, with p from `Belief.jump_chance`. What the operator's
                     ceiling leaves is the most that a jump can take.
    With 30 operators and a network of 3 ms, sqrt(2 ln t / c) is 1 to 2 ms while a slot brings 0.01 to 0.1 ms, so the
    rule as written is round-robin there; hence "spread" for the product. Without the jumps (`surprise` 0) an operator
    on a plateau is hardly ever tried again: on simulated curves that takes half again as many slots.
    An operator is finished after `patience` configurations proposed without improvement (None: never); `onward`: they are
    doubled when all are finished, else the run ends. `open`: no constant for a first slot. `rise`: the reward is the curve's
    rise, not the improvement over the best. `prior` and `pieces`: as `Belief` takes them.
    `curve` names the belief's family, `sampling` how its posterior is sampled; C is `c_fast` for a network that was
    under `fast_latency` seconds after warm-up.
    """

    score: str = "improvement"
    scale: str = "spread"
    surprise: float = 1 / 3
    c: float = 2.0
    c_fast: float = 0.2
    fast_latency: float = 1e-3
    patience: int | None = None
    onward: bool = False
    open: bool = False
    rise: bool = False
    prior: bool = True
    pieces: bool = True
    rescue: int = 4
    curve: str = "log_power"
    sampling: Sampling = FAST

    def __post_init__(self) -> None:
        if self.score not in TERMS:
            raise ValueError(f"score {self.score!r} is unknown; use one of {', '.join(TERMS)}")
        counted(self.patience, self.rescue)
        numbers = self.c, self.c_fast, self.fast_latency
        if not (0 <= min(numbers) <= max(numbers) < math.inf and 0 <= self.surprise <= 1):
            raise ValueError(
                f"c {self.c}, c_fast {self.c_fast} and fast_latency {self.fast_latency} start at 0, surprise {self.surprise} "
                "is a share from 0 to 1"
            )
        if self.scale not in ("millisecond", "spread"):
            raise ValueError(f"scale {self.scale!r} is unknown; use 'millisecond' or 'spread'")
        if self.open and self.scale != "spread":
            raise ValueError(
                f"an open rule needs the rewards' scale; use scale 'spread', not {self.scale!r}, or open false"
            )
        if self.score == "speed" and self.scale != "millisecond":
            raise ValueError(
                f"score 'speed' is in GFLOP/s and its bonus 1 of them; use scale 'millisecond', not {self.scale!r}, with open "
                "false, or scheduler dynatune-paper"
            )
        least = 2 * (len(curve_named(self.curve).parameters) + 1)
        if self.sampling.walkers < least:
            raise ValueError(
                f"sampling of {self.sampling.walkers} walkers is of too few for curve {self.curve!r} and its noise; take "
                f"{least} at least"
            )

    def changed(self, parameters: Mapping[str, Any]) -> Rule:
        """With JSON `parameters` in place of its own, "sampling" by its fields.

        Raises TypeError for names that are no parameters.
        """
        changes = dict(parameters)
        if "sampling" in changes:
            changes["sampling"] = replace(self.sampling, **changes["sampling"])
        return replace(self, **changes)


PRODUCT_RULE = Rule(c_fast=2.0, patience=400, onward=True, open=True, rise=True)
"""The bonus follows the size of the rewards, so that C = 2 needs no exception for fast networks."""

PAPER_RULE = Rule(scale="millisecond", surprise=0.0, patience=200, sampling=PAPER)
"""DynaTune 4.2 and 5: C = 2, or 0.2 under 1 ms; finished after 200 configurations without improvement."""
