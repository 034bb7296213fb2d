"""Chameleon's Adaptive Exploration: proximal policy optimisation over knobs. Torch is loaded at its first walk."""

from workers.engine.explorer.ppo.explorer import PPO
from workers.engine.explorer.ppo.settings import Settings

__all__ = ["PPO", "Settings"]
