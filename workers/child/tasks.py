"""What a child can be asked to do, by the order's "task"."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from workers.child.pulse import Pulse
from workers.messages.channel import ControlReader

Task = Callable[[dict[str, Any], ControlReader, Pulse], None]

TASKS = {
    "tune": ("workers.child.tune", "tune"),
    "landscape": ("workers.child.landscape", "record_landscape"),
    "compile": ("workers.child.artifact", "compile_artifact"),
    "baseline": ("workers.child.baseline", "measure_baselines"),
    "inspect": ("workers.child.inspect", "inspect_network"),
    "convert": ("workers.child.convert", "convert_network"),
    "hardware": ("workers.child.hardware", "describe_hardware"),
}


def task_named(name: str) -> Task:
    """Imports what this task needs and no more: an inspection must not wait for TVM and xgboost. Raises KeyError."""
    module, function = TASKS[name]
    return cast(Task, getattr(import_module(module), function))
