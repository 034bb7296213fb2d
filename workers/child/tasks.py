"""What a child can be asked to do, by the order's "task"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workers.child.artifact import compile_artifact
from workers.child.baseline import measure_baselines
from workers.child.describe import describe_hardware, inspect_network
from workers.child.pulse import Pulse
from workers.child.tune import tune
from workers.messages.channel import ControlReader

TASKS: dict[str, Callable[[dict[str, Any], ControlReader, Pulse], None]] = {
    "tune": tune,
    "compile": compile_artifact,
    "baseline": measure_baselines,
    "inspect": inspect_network,
    "hardware": describe_hardware,
}
