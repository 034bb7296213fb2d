"""A connection to a device."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

from workers.messages.device import PROTOCOL, Address
from workers.tvm_backend import runtime
from workers.tvm_backend.members import Dead, Member

REACH = 10.0
"""Seconds for a device to answer when it is called."""
PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
"""Seconds before each further try: a device that starts anew is back within a minute."""
GREETING = 1 << 16
KEPT_ALIVE = {socket.TCP_KEEPIDLE: 15, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3}
"""Seconds, and how often: of a cable that was cut nothing else tells."""


class DeviceGone(RuntimeError):
    """It does not answer; the next attempt may find it back."""

    passing = True
    next_step = "see that it is on and that 'python -m workers.device' runs there, and that its address is right"


class DeviceRefused(RuntimeError):
    """It answers, and cannot be worked with as it is."""

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(reason)
        self.next_step = next_step


@dataclass(eq=False)
class Line(Member):
    """An open connection; `greeting` is what the device said of itself."""

    greeting: dict[str, Any] = None  # type: ignore[assignment]

    def send(self, verb: str, timeout: float, **arguments: Any) -> None:
        super().send(verb, timeout, within=timeout, **arguments)

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
            raise DeviceRefused(f"the device could not do {verb!r}: {answer['error']}", DeviceGone.next_step)
        return answer


def call(address: Address) -> Line:
    """Raises DeviceGone, and DeviceRefused for a wrong key or other versions."""
    try:
        reached = socket.create_connection((address.host, address.port), REACH)
    except OSError as error:
        raise DeviceGone(f"the device at {address} does not answer ({error.strerror or error})") from None
    reached.settimeout(None)
    reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reached.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEPT_ALIVE.items():
        reached.setsockopt(socket.IPPROTO_TCP, option, value)
    connection = Connection(reached.detach())
    try:
        greeting = _greeted(connection, address)
    except BaseException:
        connection.close()
        raise
    return Line(0, connection, lambda: 0, greeting=greeting)


def call_again(address: Address, say: Callable[[str], None]) -> Line:
    """The same, tried for a while; `say` is told that, and when it is back."""
    for pause in PAUSES:
        try:
            return call(address)
        except DeviceGone as gone:
            say(f"{gone}; trying again in {pause:g} s")
        time.sleep(pause)
    return call(address)


def _greeted(connection: Connection, address: Address) -> dict[str, Any]:
    try:
        if not connection.poll(REACH):
            raise DeviceGone(f"what is at {address} does not speak as a device does")
        answer_challenge(connection, address.key.encode())
        deliver_challenge(connection, address.key.encode())
        if not connection.poll(REACH):
            raise DeviceGone(f"the device at {address} does not answer")
        greeting = dict(json.loads(connection.recv_bytes(GREETING)))
    except AuthenticationError:
        raise DeviceRefused(
            f"the device at {address} has another key", "take the key that 'python -m workers.device' prints there"
        ) from None
    except (EOFError, OSError, ValueError) as error:
        raise DeviceGone(
            f"the device at {address} broke off the call ({error or 'it closed the connection'})"
        ) from None
    ours = runtime.versions(runtime.LOADING)
    if greeting["protocol"] != PROTOCOL or greeting["versions"] != ours:
        raise DeviceRefused(
            f"the device at {address} has {_told(greeting)}, and this site {_told({'protocol': PROTOCOL, 'versions': ours})}",
            "install the site's versions on the device, and start 'python -m workers.device' there again",
        )
    return greeting


def _told(greeting: dict[str, Any]) -> str:
    return ", ".join([f"protocol {greeting['protocol']}", *(f"{n} {v}" for n, v in greeting["versions"].items())])
