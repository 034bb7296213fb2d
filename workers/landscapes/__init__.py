"""Measurements without a device: recorded ones to replay, synthetic ones for tests, on a simulated clock."""

from workers.landscapes.clock import SimulatedClock
from workers.landscapes.landscape import Landscape, LandscapeError
from workers.landscapes.recording import Recording
from workers.landscapes.replay import ReplayBackend
from workers.landscapes.synthetic import SyntheticLandscape, synthetic_operators

__all__ = [
    "Landscape",
    "LandscapeError",
    "Recording",
    "ReplayBackend",
    "SimulatedClock",
    "SyntheticLandscape",
    "synthetic_operators",
]
