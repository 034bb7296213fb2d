"""Explorers by name. A factory takes the explorer's own generator and its parameters; a proposer makes one a sketch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workers.engine.explorer.evolutionary import METASCHEDULE, Evolutionary
from workers.engine.explorer.ppo import PPO
from workers.engine.explorer.random import RandomExplorer
from workers.engine.explorer.simulated_annealing import SimulatedAnnealing
from workers.engine.ports import Explorer


def metaschedule(rng: np.random.Generator, **changes: Any) -> Explorer:
    """TVM's evolutionary search with its numbers, on knobs. Where TVM is, its own takes this one's place."""
    return Evolutionary(rng, **{**METASCHEDULE, **changes})


EXPLORERS: dict[str, Callable[..., Explorer]] = {
    "simulated_annealing": SimulatedAnnealing,
    "evolutionary": Evolutionary,
    "metaschedule": metaschedule,
    "ppo": PPO,
    "random": RandomExplorer,
}

__all__ = ["EXPLORERS", "PPO", "Evolutionary", "RandomExplorer", "SimulatedAnnealing"]
