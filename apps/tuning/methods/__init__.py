"""The parts of methods in plain words. The engine has them, which the web process must not import; a test compares names
and numbers."""

from __future__ import annotations

from apps.tuning.methods.composed import misfit, replaced, titled
from apps.tuning.methods.parts import OFFERED, PARTS, ROLES, VALUES
from apps.tuning.methods.words import Part

__all__ = ["OFFERED", "PARTS", "ROLES", "VALUES", "Part", "misfit", "replaced", "titled"]
