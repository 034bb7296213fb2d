"""The library on the device it is for: run there by the archive's own run script, for its outputs and its latency."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from workers.baselines.order import Latency
from workers.child.peers import ArtifactFailed, undisturbed
from workers.tvm_backend.remote.line import Line, call, call_again

PART = 4 * 2**20
"""Bytes of a file that are sent at a time."""
MOVED, LOCKED, TOOK = 120.0, 600.0, 300.0
"""Seconds for a part of a file, for the device's measuring lock, and for the run script."""
TURNS, RUNS, TURN = 6, 30, 1.0
"""The script is started so many times, and runs the network so often, or for so many seconds, each time."""


class Elsewhere:
    """What is in a folder, on the device."""

    def __init__(self, line: Line, folder: Path) -> None:
        self._line = line
        for name in ("model.so", "metadata.json", "run.py"):
            self.put(folder / name)

    def put(self, path: Path) -> None:
        with path.open("rb") as file:
            begins = True
            while (part := file.read(PART)) or begins:
                self._line.ask("put", MOVED, name=path.name, data=base64.b64encode(part).decode(), begins=begins)
                begins = False

    def outputs(self, given: Sequence[Path], found: Sequence[Path]) -> None:
        """What the library makes of each file of inputs; raises ArtifactFailed."""
        for path in given:
            self.put(path)
        names = ("--inputs", *(path.name for path in given), "--outputs", *(path.name for path in found))
        with self._alone():  # it would disturb what others time there
            self._script(*names, "--runs", "0")
        for path in found:
            path.write_bytes(base64.b64decode(self._line.ask("get", MOVED, name=path.name)["data"]))

    def timed(self) -> Latency:
        """Alone on the device; raises ArtifactFailed."""
        with self._alone():
            return undisturbed([self._script("--runs", str(RUNS), "--seconds", str(TURN)) for _ in range(TURNS)])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._line.ask("hold", LOCKED)
        yield
        self._line.ask("release", MOVED)

    def _script(self, *arguments: str) -> list[float]:
        answer = self._line.ask("script", TOOK + 10.0, arguments=["--json", *arguments], seconds=TOOK)
        output = str(answer["output"])
        if answer["status"]:
            raise ArtifactFailed(f"run.py failed on the device: {output[-600:].strip() or 'it said nothing'}")
        answers = [line for line in output.splitlines() if line.startswith('{"seconds"')]
        if not answers:
            raise ArtifactFailed(f"run.py gave no times on the device: {output[-600:].strip() or 'it said nothing'}")
        return [float(seconds) for seconds in json.loads(answers[-1])["seconds"]]


@contextmanager
def elsewhere(folder: Path, say: Callable[[str], None]) -> Iterator[Elsewhere]:
    """With what is in `folder`, for as long as the connection lasts; `say` as in `call_again`. Raises DeviceGone and
    DeviceRefused."""
    line = call_again(call, say)
    try:
        yield Elsewhere(line, folder)
    finally:
        line.close()
