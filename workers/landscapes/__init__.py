"""Measurements without a device: recorded ones to replay, synthetic ones for tests, on a simulated clock."""

from workers.landscapes.clock import SimulatedClock
from workers.landscapes.costs import Charged, Costs
from workers.landscapes.curves import CurveLandscape, CurveRecording, RecordedSearch
from workers.landscapes.landscape import Landscape, LandscapeError
from workers.landscapes.spaces import SpaceLandscape, SpaceRecording
from workers.landscapes.synthetic import SyntheticLandscape, synthetic_operators

__all__ = [
    "Charged",
    "Costs",
    "CurveLandscape",
    "CurveRecording",
    "Landscape",
    "LandscapeError",
    "RecordedSearch",
    "SimulatedClock",
    "SpaceLandscape",
    "SpaceRecording",
    "SyntheticLandscape",
    "synthetic_operators",
]
