"""Recording landscapes from any backend, part by part: what is on the disk is not measured again.

A part is one operator (of one seed), written when it is whole; a part of a space also every few hundred
configurations. `make` gives a fresh backend: a program counts as known only within one.
"""

from workers.landscapes.recorder.curves import curves_of, record_curves
from workers.landscapes.recorder.part import EVALUATION
from workers.landscapes.recorder.spaces import record_spaces, spaces_of
from workers.landscapes.recorder.watch import Watch

__all__ = ["EVALUATION", "Watch", "curves_of", "record_curves", "record_spaces", "spaces_of"]
