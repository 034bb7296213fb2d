"""A real device: a process that waits on loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import eventually
from workers.messages.device import Address
from workers.sandbox.spawn import ROOT
from workers.supervision.switchboard import Unreached, dial

SECRET = "of the shell that started it"
SAID = re.compile(r"waiting on 127\.0\.0\.1:(\d+); the key is in (.+)")


class Running:
    """`address` as a site has it."""

    def __init__(self, folder: Path, modules: str, program: Sequence[str]) -> None:
        self.folder, self.lock, self.modules = folder, folder / "locks" / "device.lock", modules
        self.program = program
        self.start(0)

    def start(self, port: int) -> None:
        own = {"PYTHONPATH": self.modules, "TMPDIR": str(self.folder), "SHELL_TOKEN": SECRET}
        environment = os.environ | own | {"TUNINGSITE_MEASURE_LOCK": str(self.lock.with_name("measure.lock"))}
        said = self.folder / "said"
        with said.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, *self.program, "--port", str(port), "--key", str(self.folder / "key")],
                stdout=output, env=environment,
            )  # fmt: skip
        found = eventually(lambda: SAID.search(said.read_text()), 90.0, "the device")
        self.address = Address("127.0.0.1", int(found[1]), Path(found[2]).read_text().strip())

    def call(self) -> Any:
        """A line to it, as a child has it of its supervisor."""
        from workers.tvm_backend.remote.line import DeviceGone, greeted

        try:
            return greeted(dial(self.address))
        except Unreached as unreached:
            raise DeviceGone(str(unreached)) from None

    def target(self) -> dict[str, Any]:
        """As it is compiled for."""
        line = self.call()
        try:
            return dict(line.ask("hardware", 10.0, peak=False)["hardware"]["target"])
        finally:
            line.close()

    def children(self) -> list[int]:
        return [
            int(pid) for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        ]

    def end(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(10.0)


@contextmanager
def device(folder: Path, modules: str = ROOT, program: Sequence[str] = ("-m", "workers.device")) -> Iterator[Running]:
    running = Running(folder, modules, program)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end(signal.SIGKILL)
