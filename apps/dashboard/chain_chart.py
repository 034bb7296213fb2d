"""The chain of a belief's last fit, drawn: what its walkers expected an operator's best to come to, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from apps.dashboard.plot import Plot, Tick

PLACES: Mapping[str, dict[str, Any]] = {
    "wide": {"right": 760, "height": 200, "bottom": 172, "foot": 172},
    "narrow": {"width": 380, "left": 58, "right": 372, "height": 216, "top": 28, "bottom": 188, "foot": 188},
}
MOST, QUANTILES = 50, 5
"""Steps that are drawn, and lines, whatever a child tells."""


@dataclass(frozen=True)
class Steps(Plot):
    """Steps of a chain across, in place of times; the first `burn` were thrown away."""

    burn: float = 0.0

    @property
    def kept(self) -> float:
        """Where what was kept begins."""
        return self.x(self.burn)

    def times(self) -> list[Tick]:
        shown = dict.fromkeys((0.0, min(self.burn, self.end), self.end))
        return [(self.x(step), f"step {step:.0f}" if step else "0") for step in shown]


@dataclass(frozen=True)
class Fan:
    """`outer` and `inner` are polygons of the middle 80 % and the middle half of the walkers, `middle` the line of their
    median; `rows` have the step and the five quantiles in seconds, the slowest first."""

    plot: Steps
    outer: str
    inner: str
    middle: str
    rows: Sequence[tuple[float, Sequence[float]]]

    @property
    def label(self) -> float:
        """The height at which the line ends."""
        return float(self.middle.rpartition(",")[2])


def fan(decision: Any, size: str = "wide") -> Fan | None:
    """Of a slot's decision; None where nothing was sampled, and for what no child of ours tells."""
    with suppress(LookupError, TypeError, ValueError, ArithmeticError):
        told = decision["chain"]
        return _drawn(float(told["every"]), float(told["burn"]), told["ms"], PLACES[size])
    return None


def _drawn(every: float, burn: float, quantiles: Sequence[Sequence[float]], places: Mapping[str, Any]) -> Fan:
    if len(quantiles) != QUANTILES:
        raise ValueError(f"{len(quantiles)} quantiles were told, not {QUANTILES}")
    lines = [[(every * step, 1e-3 * ms) for step, ms in enumerate(line[:MOST])] for line in quantiles]
    slow, slower, middle, faster, fast = lines
    plot = Steps.around(middle[-1][0], (seconds for line in lines for _, seconds in line), burn=burn, **places)
    rows = [(step, [line[number][1] for line in lines]) for number, (step, _) in enumerate(middle)]
    outer, inner = plot.path([*slow, *fast[::-1]]), plot.path([*slower, *faster[::-1]])
    return Fan(plot, outer, inner, plot.path(middle), rows)
