"""A client's connection: how long it may stand still."""
# mypy: disable-error-code=no-untyped-call
# (most of Twisted has no types)

from __future__ import annotations

import socket
from typing import Any

from twisted.web import http

STALLED = 60.0  # s in which the client takes nothing of what it was sent


class Connection(http.HTTPChannel):
    """Broken off by the kernel when its client takes nothing: what waits for it would wait for ever."""

    def connectionMade(self) -> None:
        super().connectionMade()
        transport: Any = self.transport
        if (handle := transport.getHandle()).family != socket.AF_UNIX:
            handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * STALLED))
