"""Names that a run may be given. The engine makes them; the web process must not import it, and a test compares."""

from __future__ import annotations

METHODS = ("auto", "dynatune", "dynatune-paper", "autotvm", "sequential", "round_robin", "random")
ROLES = ("scheduler", "explorer", "sampler", "cost_model", "evaluator")
LAYOUTS = ("auto", "NHWC", "NCHW")
