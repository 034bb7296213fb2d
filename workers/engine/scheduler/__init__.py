"""Who gets the next slot. A scheduler joins by one file and one line in `SCHEDULERS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workers.engine.ports import Scheduler
from workers.engine.registry import make
from workers.engine.scheduler.dynatune import DynaTune
from workers.engine.scheduler.epsilon_greedy import EpsilonGreedy
from workers.engine.scheduler.gradient import Gradient
from workers.engine.scheduler.linear import Linear
from workers.engine.scheduler.oracle import Oracle, regret
from workers.engine.scheduler.random import Random
from workers.engine.scheduler.round_robin import RoundRobin
from workers.engine.scheduler.rule import PAPER_RULE, PRODUCT_RULE, Rule
from workers.engine.scheduler.sequential import Sequential
from workers.engine.scheduler.setting import Factory, Setting
from workers.engine.scheduler.softmax import Softmax

FINISHED = 200
"""Configurations proposed without improvement after which dynamic allocation takes an operator as finished (DynaTune 5.3)."""


def _dynatune(rule: Rule) -> Factory:
    return lambda setting, **parameters: DynaTune(setting.seed, setting.peak_flops, rule.changed(parameters))


def _epsilon_greedy(setting: Setting, epsilon: float = 0.05, **parameters: Any) -> Scheduler:
    return EpsilonGreedy(setting.seed, setting.peak_flops, PRODUCT_RULE.changed(parameters), epsilon)


def _softmax(setting: Setting, temperature: float = 1.0, unit: str = "mean", **parameters: Any) -> Scheduler:
    return Softmax(setting.seed, setting.peak_flops, PRODUCT_RULE.changed(parameters), temperature, unit)


def _gradient(setting: Setting, **parameters: Any) -> Scheduler:
    return Gradient(setting.seed, **parameters)


def _oracle(
    setting: Setting, curves: Mapping[str, Sequence[float]] | Sequence[Sequence[float]] | None = None, **parameters: Any
) -> Scheduler:
    """`curves` by operator index, or in order of it."""
    if curves is not None and not isinstance(curves, Mapping):
        curves = {str(index): curve for index, curve in enumerate(curves)}
    return Oracle(curves, **parameters)


def _random(own: int | None) -> Factory:
    return lambda setting, patience=own: Random(setting.seed, patience)


def _round_robin(own: int | None) -> Factory:
    return lambda setting, patience=own: RoundRobin(patience)


def _linear(setting: Setting, patience: int | None = None) -> Scheduler:
    return Linear(patience)


def _sequential(setting: Setting, patience: int | None = None) -> Scheduler:
    return Sequential(setting.left, setting.trials, patience, setting.repeated)


SCHEDULERS: dict[str, Factory] = {
    "dynatune": _dynatune(PRODUCT_RULE),
    "dynatune-paper": _dynatune(PAPER_RULE),
    "epsilon_greedy": _epsilon_greedy,
    "softmax": _softmax,
    "gradient": _gradient,
    "sequential": _sequential,
    "round_robin": _round_robin(None),
    "random": _random(None),
    "linear": _linear,
    "dynamic_round_robin": _round_robin(FINISHED),
    "dynamic_random": _random(FINISHED),
    "oracle": _oracle,
}


def scheduler_named(name: str, setting: Setting, **parameters: Any) -> Scheduler:
    """A new scheduler of that name for one run, with JSON `parameters` of its own, for example {"curve": "pow2"}.

    Raises UnknownPart for names nobody registered, and IllegalMethod for parameters that it does not take and for a
    scheduler that needs something the run does not have.
    """
    return make("scheduler", SCHEDULERS, name, setting, **parameters)


__all__ = [
    "PAPER_RULE",
    "PRODUCT_RULE",
    "SCHEDULERS",
    "DynaTune",
    "EpsilonGreedy",
    "Factory",
    "Gradient",
    "Linear",
    "Oracle",
    "Random",
    "RoundRobin",
    "Rule",
    "Sequential",
    "Setting",
    "Softmax",
    "regret",
    "scheduler_named",
]
