"""Explorers by name. A factory takes the explorer's own generator and its parameters; a proposer makes one a sketch."""

from __future__ import annotations

from collections.abc import Callable

from workers.engine.explorer.evolutionary import Evolutionary
from workers.engine.explorer.ppo import PPO
from workers.engine.explorer.random import RandomExplorer
from workers.engine.explorer.simulated_annealing import SimulatedAnnealing
from workers.engine.ports import Explorer

EXPLORERS: dict[str, Callable[..., Explorer]] = {
    "simulated_annealing": SimulatedAnnealing,
    "evolutionary": Evolutionary,
    "ppo": PPO,
    "random": RandomExplorer,
}

__all__ = ["EXPLORERS", "PPO", "Evolutionary", "RandomExplorer", "SimulatedAnnealing"]
