"""Why a candidate has no latency: the causes that mean something to those who count."""

from __future__ import annotations

DUPLICATE, LARGE = "duplicate", "large"
UNBUILT = (DUPLICATE, LARGE)
"""Nothing was built, so they are no trials: the same program as an earlier one, or more code than compiling it is worth."""
INVALID = "invalid"
"""No program could be made of it: the configuration alone is to blame."""
