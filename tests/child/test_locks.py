"""What is heavy beside the compiling of a library is done while nobody times kernels."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workers.baselines.order import Latency
from workers.baselines.verify import OutputVerdict, Verdict
from workers.child import artifact
from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.child.rehearsal import rehearsed
from workers.messages.channel import ControlReader
from workers.messages.orders import compile_order
from workers.messages.spec import AUTO, RunSpec
from workers.messages.tuning_log import FILE
from workers.sandbox.lock import MeasureLock


@pytest.fixture
def pulse() -> Iterator[Pulse]:
    pulse = Pulse(lambda event: None, RunClock(0.0))
    yield pulse
    pulse.close()


@pytest.fixture
def free() -> Callable[[], bool]:
    """Whether somebody may time kernels now."""
    lock = MeasureLock()
    lock.files()

    def found() -> bool:
        with lock.path.open() as another:
            try:
                fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    return found


@pytest.mark.tvm
def test_nobody_times_while_rivals_are_looked_for_in_a_log_of_hours(
    tmp_path: Path, pulse: Pulse, free: Callable[[], bool]
) -> None:
    network: Any = SimpleNamespace(compiled=lambda best: "the best")
    best, log, met = {0: (0, (1,), 1.0)}, tmp_path / FILE, list[bool]()
    os.mkfifo(log)

    def told() -> None:
        with log.open("w") as line:  # once somebody reads
            met.append(free())
            line.write(json.dumps({"kind": "slot"}) + "\n")

    writer = threading.Thread(target=told, daemon=True)
    writer.start()
    inspection: Any = SimpleNamespace(parameter_bytes=1)
    assert rehearsed(network, best, log, 3600.0, 1e-3, inspection, [], pulse) == (best, "the best", None)
    writer.join(30)
    assert met == [False]
    assert free()


def test_nobody_times_while_an_archive_is_packed(
    tmp_path: Path, pulse: Pulse, free: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    met, latency = list[bool](), Latency(1.0, 1.0, 1.0, 3)

    def packed(*_: Any) -> Path:
        met.append(free())
        return tmp_path / "artifact.zip"

    monkeypatch.setattr(artifact, "_build", lambda *_: None)
    monkeypatch.setattr(artifact, "_verified", lambda *_: Verdict((OutputVerdict("y", True, 0.0, 1.0),)))
    monkeypatch.setattr(artifact, "_timed", lambda *_: (latency, latency))
    monkeypatch.setattr(artifact, "pack", packed)
    spec = RunSpec("net.onnx", {"kind": "llvm"}, 1, 1e11, 1e10).to_json()
    order = compile_order(spec, tmp_path, "net", AUTO, {}, None, tmp_path / FILE, 0.0, None, "")
    artifact.compile_artifact(order, ControlReader(), pulse)
    assert met == [False]
    assert free()
