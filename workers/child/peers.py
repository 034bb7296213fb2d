"""Running the library's own run script and ONNX Runtime, each in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from io import BufferedReader, FileIO
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np

from workers.baselines.order import Latency, Order
from workers.child.pulse import Pulse
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.cores import threads_here
from workers.messages.spec import RunSpec
from workers.sandbox.lock import MeasureLock
from workers.sandbox.spawn import spawn
from workers.tvm_backend.members import in_words

SEEDS = (0, 1, 2)
PATIENCE = 300.0
"""Seconds for one answer; a library that hangs must not keep the measuring lock."""
BRIEF = 30.0
"""The same where it is another account's run whose clock goes on meanwhile: to start, warm up and run once takes most a few."""
TURNS, LEAST, RUNS = 20, 3, 10
"""Many short turns: what disturbs a machine for a second then hits both sides, and leaves most turns alone."""
TURN, LONGEST = 0.3, 60.0
"""Seconds that runs of a turn, and all turns, may take: of a slow network there are fewer, but one run in each of `LEAST`."""


LONG = 10.0
"""Seconds of a library's turn, after which there is no other: what disturbs a machine is little of it, and everybody else's
measuring stands still."""
patience: ContextVar[float] = ContextVar("patience", default=inf)
"""Seconds for one answer, where they are fewer than `PATIENCE`."""
ANSWERED = {"seconds", "references", "error", "done"}
"""One of them is in every answer."""


class ArtifactFailed(Exception):
    """The library could not be made or run; `passing`: perhaps it was killed from outside, as by the kernel without memory."""

    passing = False
    next_step = "the run's measurements are kept; the end of the log names what failed"


class Peer:
    """A library in a process of its own. It is stopped but when it is asked: neither its threads nor what it loads disturb
    another. End it with `close`, or by leaving the `with` block."""

    def __init__(self, name: str, argv: list[str], order: str = "", env: Mapping[str, str] | None = None) -> None:
        """Raises ArtifactFailed, of `name`, when it does not answer."""
        self._name = name
        self._process = spawn(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._said = BufferedReader(cast(FileIO, self._process.stdout))
        try:
            self.answer = self._asked(f"{order}\n" if order else "")
        except BaseException:
            self.close()
            raise

    def again(self) -> dict[str, Any]:
        """Another answer like the first one."""
        self._process.popen.send_signal(signal.SIGCONT)
        return self._asked("\n")

    def seconds(self, turn: int) -> list[float]:
        """Of each run of a turn; the first one was timed when it started, unless it was paced."""
        return list((self.answer if not turn and "seconds" in self.answer else self.again())["seconds"])

    def close(self) -> None:
        self._process.end(0.0)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _asked(self, text: str) -> dict[str, Any]:
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.popen.kill()

        timer = threading.Timer(limit := min(PATIENCE, patience.get()), end)
        timer.start()
        try:
            answer, said = self._heard(text)
        finally:
            timer.cancel()
        if answer is None:
            if late.is_set():
                raise _late(self._name, limit)
            how = self._end_in_words()
            failed = ArtifactFailed(f"{self._name} failed: {said[-600:].strip() or how}")
            failed.passing = self._process.popen.returncode == -signal.SIGKILL
            raise failed
        if "error" in answer:
            raise ArtifactFailed(f"{self._name}: {answer['error']}")
        self._process.popen.send_signal(signal.SIGSTOP)
        return answer

    def _heard(self, text: str) -> tuple[dict[str, Any] | None, str]:
        """The first line that is an answer, or None where there is none, and what it said before."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # what it says of its end is told
            self._process.stdin.write(text.encode())
        said = ""
        while line := self._said.readline().decode(errors="replace"):
            begin = line.find('{"')  # what a library says of its progress may end without a new line
            if begin >= 0:
                with suppress(ValueError):
                    answer = json.loads(line[begin:])
                    if ANSWERED & answer.keys():
                        return answer, said
            said += line
        return None, said

    def _end_in_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f"it {in_words(self._process.popen.wait(1.0))} and said nothing"
        return "it said nothing"


def _late(name: str, limit: float) -> ArtifactFailed:
    failed = ArtifactFailed(f"{name} did not answer within {limit:g} s and was ended")
    failed.passing = limit < PATIENCE  # it is asked again in the turn of its own run
    return failed


def run_script(spec: RunSpec, folder: Path, *arguments: str) -> Peer:
    """`run.py` in `folder`; raises ArtifactFailed."""
    argv = [sys.executable, str(folder / "run.py"), "--json", *arguments]
    return Peer("run.py", argv, env={"TVM_NUM_THREADS": str(spec.threads)})


def library(spec: RunSpec, folder: Path, *arguments: str) -> Peer:
    """`run.py` in `folder`, to be timed `in_turns`; raises ArtifactFailed."""
    return run_script(spec, folder, "--turns", "--runs", str(RUNS), "--seconds", str(TURN), *arguments)


def onnxruntime(spec: RunSpec, work: Path, runs: int = RUNS, scale: float = 1.0, positive: bool = False) -> Peer:
    """To be timed `in_turns` on as many threads as the library, or, with 0 runs, reference outputs for every seed under `work`,
    of inputs of that `scale`, and `positive` or not, for which a device's threads may be more than there are cores here; raises
    ArtifactFailed."""
    references = str(work / "references")
    threads = spec.threads if runs else threads_here(spec.threads)
    order = Order(
        spec.network, references, dict(spec.inputs), scale, SEEDS, threads, runs, longest=TURN, positive=positive
    )
    return Peer(ONNX_RUNTIME, [sys.executable, "-m", "workers.baselines"], order.to_json())


def in_turns(
    ours: Peer | None, theirs: Peer, lock: MeasureLock, count: int = TURNS, look: float = inf
) -> Iterator[tuple[list[float], list[float]]]:
    """Seconds of each run of either, a turn at a time under the lock; no second turn where one of them takes over LONG, and
    no more than LEAST once they took LONGEST. What others take meanwhile does not count. Theirs has its turns alone where
    there is no `ours`, or once that took over `look`."""
    spent = 0.0
    for turn in range(count):
        with lock.exclusive():
            began = time.monotonic()
            pair = ours.seconds(turn) if ours else [], theirs.seconds(turn)
            spent += time.monotonic() - began
        yield pair
        if sum(pair[0]) > look:
            ours, pair, spent = None, ([], pair[1]), 0.0
        if max(map(sum, pair)) > LONG or (turn + 1 >= LEAST and spent > LONGEST):
            return


def undisturbed(blocks: Sequence[Sequence[float]]) -> Latency:
    """Of the quickest quarter of the turns, or as many more as have three runs: what disturbs a machine only ever adds."""
    quickest = sorted(blocks, key=median)
    count = max(1, len(blocks) // 4)
    while count < len(blocks) and sum(map(len, quickest[:count])) < 3:
        count += 1
    return Latency.of(np.concatenate(quickest[:count]))


def tell_baseline(pulse: Pulse, spec: RunSpec, name: str, latency: Latency) -> None:
    pulse.tell(
        "baseline",
        name=name,
        seconds=latency.median,
        spread=half_range(latency),
        runs=latency.runs,
        threads=spec.threads,
    )


def half_range(latency: Latency) -> float:
    """Half the distance between the quartiles, in seconds: the spread shown behind a median."""
    return (latency.upper_quartile - latency.lower_quartile) / 2
