"""A connection to a device."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from workers.messages.device import GONE, PROTOCOL, SWITCHBOARD
from workers.tvm_backend import runtime
from workers.tvm_backend.members import Dead, Member, heard

GREETS = 10.0
"""Seconds for its greeting."""
PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
"""Seconds before each further try: a device that starts anew is back within a minute."""
GREETING = 1 << 16
SILENCE = 5.0
"""Seconds beyond an order's own, after which the line is broken: the device's process would have ended, and the line too."""
BROKEN = "line"


class DeviceGone(RuntimeError):
    """It does not answer; the next attempt may find it back."""

    passing = True
    next_step = GONE


class DeviceRefused(RuntimeError):
    """It answers, and cannot be worked with as it is."""

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(reason)
        self.next_step = next_step


@dataclass(eq=False)
class Line(Member):
    """An open connection; `greeting` is what the device said of itself."""

    greeting: dict[str, Any] = field(default_factory=dict)
    within: float = 0.0

    def send(self, verb: str, timeout: float, **arguments: Any) -> None:
        """The device's process ends itself when `timeout` seconds are over there."""
        self.within = timeout
        super().send(verb, timeout + SILENCE, within=timeout, **arguments)
        self.ordered = time.monotonic()  # a library may be long on its way

    def receive(self) -> dict[str, Any]:
        """The answer; raises Dead, of cause "line" where there is neither one nor an end."""
        try:
            return super().receive()
        except Dead as dead:
            if dead.cause == "timeout":
                raise Dead(BROKEN, f"the device said nothing for {self.timeout:.3g} s") from None
            if dead.cause == "crash" and time.monotonic() - self.ordered >= self.within:
                raise Dead("timeout", f"it did not finish within {self.within:.3g} s") from None
            raise

    def gone(self) -> str:
        return "the program ended the device's process, or the connection broke"

    def ask(self, verb: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        """The answer; raises DeviceGone where there is none, DeviceRefused where it is an error."""
        self.send(verb, timeout, **arguments)
        try:
            answer = self.receive()
        except Dead as dead:
            raise DeviceGone(f"the device gave no answer to {verb!r}: {dead}") from None
        if "error" in answer:
            raise DeviceRefused(
                f"the device could not do {verb!r}: {answer['error']}", "look at that on the device, then test it again"
            )
        return answer


def call() -> Line:
    """A connection from the switchboard of this process. Raises DeviceGone, and DeviceRefused for a wrong key or other
    versions."""
    with socket.socket(fileno=os.dup(int(os.environ[SWITCHBOARD]))) as board:
        board.sendall(b"\n")
        said, numbers, _, _ = socket.recv_fds(board, GREETING, 1)
        while said and not said.endswith(b"\n") and (more := board.recv(GREETING)):
            said += more
    if not said.endswith(b"\n"):
        raise DeviceGone("who would call the device is gone")
    if not numbers:
        unreached = json.loads(said)
        if unreached["lasting"]:
            raise DeviceRefused(unreached["reason"], unreached["next_step"])
        raise DeviceGone(unreached["reason"])
    return greeted(Connection(numbers[0]))


def call_again(first: Callable[[], Line], say: Callable[[str], None]) -> Line:
    """`first`, a call, tried for a while; `say` is told that."""
    for pause in PAUSES:
        try:
            return first()
        except DeviceGone as gone:
            say(f"{gone}; trying again in {pause:g} s")
        time.sleep(pause)
    return first()


def greeted(connection: Connection) -> Line:
    """The line of an open connection, from which the device's greeting was not read yet. Raises as `call` does."""
    try:
        greeting = heard(connection, time.monotonic() + GREETS, GREETING)
        if greeting is None:
            raise DeviceGone("the device does not answer")
        ours = runtime.versions(runtime.LOADING)
        if greeting.get("protocol") != PROTOCOL or greeting.get("versions") != ours:
            raise DeviceRefused(
                f"the device has {_told(greeting)}, and this site {_told({'protocol': PROTOCOL, 'versions': ours})}",
                "install the site's versions on the device, and start 'python -m workers.device' there again",
            )
    except (EOFError, OSError) as error:
        connection.close()
        raise DeviceGone(f"the device broke off the call ({error or 'it closed the connection'})") from None
    except BaseException:
        connection.close()
        raise
    return Line(0, connection, lambda: 0, greeting=greeting)


def _told(greeting: dict[str, Any]) -> str:
    return ", ".join(
        [f"protocol {greeting.get('protocol')}", *(f"{n} {v}" for n, v in greeting.get("versions", {}).items())]
    )
