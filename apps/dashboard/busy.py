"""Whether a library was timed while the machine did something else."""

from __future__ import annotations

from apps.dashboard.figures import Headline

DISTANCE = 2.0
"""Times the sum of its operators that a network takes at most, as a rule."""


def busy(first: Headline) -> str:
    """What is said beside the latency end to end; empty where nothing speaks against it. A large distance alone may be the
    network's own: of small operators much is left between them."""
    if first.unsteady:
        return "The machine was busy when this was timed"
    if first.distance and first.distance > DISTANCE:
        return "The machine may have been busy when this was timed"
    return ""
