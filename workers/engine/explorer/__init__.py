"""Explorers by name. A factory takes the explorer's own generator and its parameters; a proposer makes one a sketch."""

from __future__ import annotations

from collections.abc import Callable

from workers.engine.explorer.random import RandomExplorer
from workers.engine.explorer.simulated_annealing import SimulatedAnnealing
from workers.engine.ports import Explorer

EXPLORERS: dict[str, Callable[..., Explorer]] = {
    "simulated_annealing": SimulatedAnnealing,
    "random": RandomExplorer,
}

__all__ = ["EXPLORERS", "RandomExplorer", "SimulatedAnnealing"]
