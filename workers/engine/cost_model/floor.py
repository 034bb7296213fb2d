"""What failures count for."""

from __future__ import annotations

LOWEST = -60.0
"""log2 of a speed relative to the best, below which a floor is none: some hundred lower it is a zero, whose logarithm no model
learns from."""
