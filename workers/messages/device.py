"""A device elsewhere: where it is reached, and what both sides of the connection agree on."""

from __future__ import annotations

import hmac
import socket
from dataclasses import asdict, dataclass, field
from typing import Any

PORT = 9190
PROTOCOL = 8
"""Of the proof of the key, orders and answers; a device that speaks another one is to be given this version."""
LEAST_KEY, MOST_KEY = 16, 200
"""Letters of a key; `python -m workers.device` draws 32."""
LONGEST = 255
"""Letters of a machine's name."""
PART = 4 * 2**20
"""Bytes of a file that are sent at a time."""
KEPT_ALIVE = {
    socket.TCP_NODELAY: 1,
    socket.TCP_KEEPIDLE: 15,
    socket.TCP_KEEPINTVL: 5,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 30_000,
}
"""Of TCP on both sides, in s, times and ms: of a cable that was cut nothing else tells, and a device's lock would be held."""
GONE = "see that it is on and that 'python -m workers.device' runs there, and that its address is right"
"""What to do where a device does not answer."""
SWITCHBOARD = "TUNINGSITE_SWITCHBOARD"
"""The variable that names a child's end of the switchboard (`supervision.switchboard`)."""


def keep_alive(connected: socket.socket) -> None:
    """Lets it break soon after what carries it."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEPT_ALIVE.items():
        connected.setsockopt(socket.IPPROTO_TCP, option, value)


def proofs(key: bytes | bytearray) -> tuple[bytes, bytes]:
    """What the site and what the device answer challenges with. With one for both, whoever the site calls could have the answer
    to its challenge from the site itself, on a second call."""
    return hmac.digest(key, b"site", "sha256"), hmac.digest(key, b"device", "sha256")


@dataclass(frozen=True)
class Address:
    """`key` is the secret of the device: whoever has it may run programs there."""

    host: str
    port: int
    key: str = field(repr=False)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Address:
        return cls(str(fields["host"]), int(fields["port"]), str(fields["key"]))

    @classmethod
    def read(cls, text: str, key: str) -> Address:
        """Of HOST, HOST:PORT or [IPv6]:PORT. Raises ValueError, which says what is wrong."""
        host, port = _parts(text.strip())
        odd = any(letter.isspace() or letter in "/@" or not letter.isprintable() for letter in host)
        if not host or odd or len(host) > LONGEST:
            raise ValueError(f"{text!r} names no machine; write HOST or HOST:PORT")
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise ValueError(f"{port!r} is no port; write a number from 1 to 65535 behind the colon")
        if not LEAST_KEY <= len(key.strip()) <= MOST_KEY or not key.strip().isprintable():
            reason = f"a key has {LEAST_KEY} to {MOST_KEY} letters, and this one has not"
            raise ValueError(f"{reason}; the device names the file of its key when it starts")
        return cls(host, int(port), key.strip())


def _parts(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return host, port.removeprefix(":") or str(PORT)
    host, colon, port = text.partition(":")
    return (text, str(PORT)) if ":" in port else (host, port if colon else str(PORT))
