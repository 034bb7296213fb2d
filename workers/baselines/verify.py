"""Does a compiled network compute what the reference computes?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-3
"""Of the largest absolute value of the reference: kernels add in another order than the reference does."""


@dataclass(frozen=True)
class OutputVerdict:
    """One output: largest difference, largest absolute reference, and why it failed (empty when it passed)."""

    name: str
    passed: bool
    difference: float | None
    scale: float | None
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    """Passed only when there are outputs and every one passed."""

    outputs: tuple[OutputVerdict, ...]
    tolerance: float

    @property
    def passed(self) -> bool:
        return bool(self.outputs) and all(output.passed for output in self.outputs)

    @property
    def reason(self) -> str:
        """Why the first failed output failed, or nothing."""
        if not self.outputs:
            return "there are no outputs to compare"
        return next((f"{output.name}: {output.reason}" for output in self.outputs if not output.passed), "")

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary with the figures of every output."""
        return {
            **asdict(self),
            "outputs": [asdict(o) for o in self.outputs],
            "passed": self.passed,
            "reason": self.reason,
        }


def compare(
    outputs: Mapping[str, NDArray[Any]], reference: Mapping[str, NDArray[Any]], tolerance: float = TOLERANCE
) -> Verdict:
    """Every output of the reference must be there: same shape, finite, and max|y - ref| <= tolerance * max|ref|."""
    verdicts = [_one(name, outputs.get(name), reference[name], tolerance) for name in reference]
    verdicts += [
        OutputVerdict(name, False, None, None, "the reference has no such output")
        for name in outputs
        if name not in reference
    ]
    return Verdict(tuple(verdicts), tolerance)


def _one(name: str, found: NDArray[Any] | None, wanted: NDArray[Any], tolerance: float) -> OutputVerdict:
    if found is None:
        return OutputVerdict(name, False, None, None, "this output is missing")
    if found.shape != wanted.shape:
        return OutputVerdict(name, False, None, None, f"its shape is {found.shape}, the reference has {wanted.shape}")
    y, ref = (np.asarray(a, np.float64) for a in (found, wanted))
    for array, whose in ((ref, "the reference"), (y, "it")):
        if not np.isfinite(array).all():
            return OutputVerdict(
                name,
                False,
                None,
                None,
                f"{whose} has {np.count_nonzero(~np.isfinite(array))} values that are not finite",
            )
    difference = float(np.abs(y - ref).max(initial=0.0))
    scale = float(np.abs(ref).max(initial=0.0))
    if difference <= tolerance * scale:
        return OutputVerdict(name, True, difference, scale)
    return OutputVerdict(
        name, False, difference, scale, f"it differs by {difference:.3g} where {tolerance * scale:.3g} is allowed"
    )
