"""Running the library's own run script and ONNX Runtime, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workers.baselines.order import Latency, Order
from workers.child.pulse import Pulse
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.spec import RunSpec
from workers.sandbox.spawn import spawn

SEEDS = (0, 1, 2)
PATIENCE = 300.0
"""Seconds for one process; a library that hangs must not keep the measuring lock."""
LONGEST = 60.0
"""Seconds for the timed runs of one process: of a slow network there are fewer."""


class ArtifactFailed(Exception):
    """The library could not be made or run."""

    next_step = "the run's measurements are kept; the end of the log names what failed"


def run_script(spec: RunSpec, folder: Path, *arguments: str) -> dict[str, Any]:
    """What `run.py --json` in `folder` answers; raises ArtifactFailed."""
    argv = [sys.executable, str(folder / "run.py"), "--seconds", str(LONGEST), *arguments]
    return _ask("run.py", argv, "", {"TVM_NUM_THREADS": str(spec.threads)})


def onnxruntime(spec: RunSpec, work: Path, runs: int) -> dict[str, Any]:
    """Reference outputs for every seed under `work`, and the seconds of `runs` runs; raises ArtifactFailed."""
    order = Order(
        spec.network, str(work / "references"), dict(spec.inputs), {}, SEEDS, spec.threads, runs, longest=LONGEST
    )
    return _ask(ONNX_RUNTIME, [sys.executable, "-m", "workers.baselines", "onnxruntime"], order.to_json(), {})


def tell_baseline(pulse: Pulse, spec: RunSpec, name: str, latency: Latency) -> None:
    pulse.tell(
        "baseline",
        name=name,
        seconds=latency.median,
        spread=half_range(latency),
        runs=latency.runs,
        threads=spec.threads,
    )


def timed(answer: dict[str, Any]) -> Latency:
    """Of one process's answer."""
    return Latency.of(np.asarray(answer["seconds"]))


def quickest(rounds: Sequence[Latency]) -> Latency:
    """The round with the least median: what disturbs a machine only ever adds."""
    return min(rounds, key=lambda latency: latency.median)


def half_range(latency: Latency) -> float:
    """Half the distance between the quartiles, in seconds: the spread shown behind a median."""
    return (latency.upper_quartile - latency.lower_quartile) / 2


def _ask(name: str, argv: list[str], text: str, env: dict[str, str]) -> dict[str, Any]:
    """The last line of a process's output, as JSON; raises ArtifactFailed, of `name`, with what it said otherwise."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.popen.kill()

    with spawn(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(text.encode())
        process.stdin.close()
        timer = threading.Timer(PATIENCE, end)
        timer.start()
        try:
            said = process.stdout.read().decode(errors="replace").strip()
        finally:
            timer.cancel()
    try:
        answer = json.loads(said.splitlines()[-1])
    except (IndexError, ValueError):
        if late.is_set():
            raise ArtifactFailed(f"{name} did not answer within {PATIENCE:g} s and was ended") from None
        raise ArtifactFailed(f"{name} failed: {said[-600:] or 'it said nothing'}") from None
    if "error" in answer:
        raise ArtifactFailed(f"{name}: {answer['error']}")
    return dict(answer)
