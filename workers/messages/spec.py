"""The order for one tuning run, as the supervisor writes it to the child's standard input."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

ALL, COMPUTE = "all", "compute"
AUTO, MEASURED = "auto", "measured"
LAYOUTS = (AUTO, MEASURED, "NHWC", "NCHW")
"""Of convolutions: AUTO is NHWC where it holds, MEASURED NCHW where first configurations are a tenth faster in it."""

MAX_TRIALS = 10_000_000
"""Configurations of a run, at most."""


@dataclass(frozen=True)
class Budget:
    """When a run stops: whichever limit is reached first; None is no limit.

    Seconds and trials are totals over the whole run, what earlier attempts spent included. `target_latency` is in seconds.
    `min_gain` is a share of the latency (0.01 is 1 %): a run ends when tuning a tenth longer, at least a minute, is expected
    to take off less.
    """

    seconds: float | None = None
    trials: int | None = None
    target_latency: float | None = None
    min_gain: float | None = None

    def left(self, clock: float, trials: int) -> float | None:
        """Seconds of tuning until the first limit of time or trials, at the pace so far; None without one."""
        left = [] if self.seconds is None else [self.seconds - clock]
        if self.trials is not None and trials:
            left.append((self.trials - trials) * clock / trials)
        return max(0.0, min(left)) if left else None


@dataclass(frozen=True)
class RunSpec:
    """One tuning run. `network` is a path; `inputs` maps an input's name to its static shape.

    `target` is TVM's target dict. `peak_flops` (FLOP/s) and `bandwidth` (bytes/s) are the target's measured ceilings on
    `threads` threads. `parts` overrides parts of the method by role, for example {"scheduler": "round_robin"}.
    `layout` is one of LAYOUTS. `operators`: ALL get slots, or with COMPUTE convolutions and matrix products only, as in the
    papers; the others keep the first configuration that works.
    """

    network: str
    target: dict[str, Any]
    threads: int
    peak_flops: float
    bandwidth: float
    inputs: dict[str, list[int]] = field(default_factory=dict)
    method: str = "dynatune"
    parts: dict[str, str] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    operators: str = ALL
    layout: str = AUTO
    seed: int = 0

    def __post_init__(self) -> None:
        if self.operators not in (ALL, COMPUTE):
            raise ValueError(f"operators {self.operators!r} is unknown; use {ALL!r} or {COMPUTE!r}")

    @property
    def balance(self) -> float:
        """FLOP that the target does while a byte comes from memory."""
        return self.peak_flops / self.bandwidth

    def to_json(self) -> str:
        """One line, keys sorted, so that equal specs are equal texts."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """Inverse of `to_json`; raises TypeError on unknown or missing fields."""
        fields = json.loads(text)
        return cls(**{**fields, "budget": Budget(**fields.pop("budget", {}))})
