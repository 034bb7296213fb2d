"""The library on the device it is for: run there by the archive's own run script, for its outputs and its latency."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any

from workers.baselines.order import Latency, Order
from workers.child.peers import LONG, SEEDS, ArtifactFailed, undisturbed
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.device import PART
from workers.messages.spec import RunSpec
from workers.tvm_backend.remote.line import DeviceGone, DeviceRefused, Line, call, call_again

MOVED, LOCKED, TOOK = 120.0, 600.0, 300.0
"""Seconds for a part of a file, for the device's measuring lock, and for the run script, or each of several inputs: as here."""
HELD = LOCKED - 60.0
"""The longest that the script holds the device, and in a turn both: others wait for it no longer than `LOCKED`."""
TOLD = 10.0
"""Seconds between two words of what is on its way."""
NETWORK = "network.onnx"
TURNS, RUNS, TURN = 6, 30, 1.0
"""The script is started so many times, and runs the network so often, or for so many seconds, each time."""
Tell = Callable[[str], None]


class Elsewhere:
    """What is in a folder, on the device."""

    def __init__(self, line: Line, folder: Path, tell: Tell) -> None:
        self._line, self._tell = line, tell
        for name in ("model.so", "metadata.json", "run.py"):
            self.put(folder / name)

    def put(self, path: Path, name: str = "") -> None:
        """Under its own name, unless another is given."""
        size, told = path.stat().st_size, time.monotonic()
        with path.open("rb") as file:
            begins = True
            while (part := file.read(PART)) or begins:
                self._line.ask(
                    "put", MOVED, name=name or path.name, data=base64.b64encode(part).decode(), begins=begins
                )
                begins = False
                if time.monotonic() - told > TOLD:
                    told = time.monotonic()
                    self._tell(f"sending {name or path.name}: {file.tell() / size:.0%}")

    def outputs(self, given: Sequence[Path], found: Sequence[Path], most: int) -> None:
        """What the library makes of each file of inputs, of `most` bytes; raises ArtifactFailed."""
        for path in given:
            self.put(path)
        names = ("--inputs", *(path.name for path in given), "--outputs", *(path.name for path in found))
        with self._alone():  # it would disturb what others time there
            self._script(*names, "--runs", "0", took=min(HELD, TOOK * max(1, len(given))))
        for path in found:
            with path.open("wb") as file:
                while part := self._line.ask("get", MOVED, name=path.name, at=file.tell())["data"]:
                    file.write(_bytes(part, path.name))
                    if file.tell() > most:
                        raise ArtifactFailed(f"the device sent over the {most} bytes that {path.name} can have")

    def timed(self, spec: RunSpec, say: Tell) -> tuple[Latency, Latency | None]:
        """Alone on the device for a turn, in turns with ONNX Runtime, where that is installed there, and no second turn where
        one takes over LONG; `say` is told where that cannot run the network. Raises ArtifactFailed."""
        compared = bool(self._line.greeting["onnxruntime"])
        try:
            if compared:
                self.put(Path(spec.network), NETWORK)
        except DeviceRefused as failed:  # the library is there; for both there may be no room
            compared = False
            with suppress(DeviceRefused):
                self._line.ask("put", MOVED, name=NETWORK, data="", begins=True)
            say(str(failed))
        ours, theirs = list[list[float]](), list[list[float]]()
        for turn in range(TURNS):
            self._tell(f"timing the library, turn {turn + 1} of {TURNS}")
            with self._alone():
                ours.append(self._script("--runs", str(RUNS), "--seconds", str(TURN), took=HELD / 2))
                try:
                    theirs += [self._compared(spec)] if compared else []
                except (ArtifactFailed, DeviceRefused) as failed:
                    compared = False  # it may not know its operators, or take too long over them
                    say(str(failed))
            if max(map(sum, (ours[-1], *theirs[-1:]))) > LONG:
                break
        return undisturbed(ours), undisturbed(theirs) if theirs else None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._line.ask("hold", LOCKED)
        yield
        self._line.ask("release", MOVED)

    def _script(self, *arguments: str, took: float = TOOK) -> list[float]:
        try:
            answer = self._line.ask("script", took + 10.0, arguments=["--json", *arguments], seconds=took)
        except DeviceGone as gone:
            if not self._line.greeting.get("gpu"):
                raise
            call().close()  # it answers: what ended is the process that the library ran in
            failed = ArtifactFailed("run.py ended the device's process, or took too long there")
            failed.passing = (
                True  # or a cable was out, which looks the same: it is tried again before that is the reason
            )
            raise failed from gone
        return _seconds(answer, "run.py")

    def _compared(self, spec: RunSpec) -> list[float]:
        order = Order(NETWORK, ".", dict(spec.inputs), 1.0, SEEDS, spec.threads, RUNS, longest=TURN)
        answer = self._line.ask("compared", HELD / 2 + 10.0, order=asdict(order), seconds=HELD / 2)
        return _seconds(answer, ONNX_RUNTIME)


def _bytes(part: Any, name: str) -> bytes:
    """Of what the device says is a part of that file; raises ArtifactFailed where it is none."""
    with suppress(ValueError, TypeError):
        if found := base64.b64decode(part, validate=True):
            return found
    raise ArtifactFailed(f"the device sent something for {name} that is no file's")


def _seconds(answer: Mapping[str, Any], name: str) -> list[float]:
    """Of each run, in the last line that tells them. Raises ArtifactFailed, of `name`."""
    output = str(answer["output"])
    told = [line for line in output.splitlines() if line.startswith("{") and '"seconds"' in line]
    if answer["status"] or not told:
        raise ArtifactFailed(f"{name} failed on the device: {output[-600:].strip() or 'it said nothing'}")
    with suppress(ValueError, TypeError, KeyError, OverflowError):
        seconds = [float(one) for one in json.loads(told[-1])["seconds"]]
        if len(seconds) <= RUNS and all(0 < one < inf for one in seconds):
            return seconds
    raise ArtifactFailed(f"{name} told on the device what are no seconds of {RUNS} runs: {told[-1][:200]}")


@contextmanager
def elsewhere(folder: Path, say: Tell, tell: Tell) -> Iterator[Elsewhere]:
    """With what is in `folder`, for as long as the connection lasts; `say` as in `call_again`, `tell` takes what is being done.
    Raises DeviceGone and DeviceRefused."""
    line = call_again(call, say)
    try:
        yield Elsewhere(line, folder, tell)
    finally:
        line.close()
