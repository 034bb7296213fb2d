"""A client's connection: how long it may stand still."""
# mypy: disable-error-code=no-untyped-call
# (most of Twisted has no types)

from __future__ import annotations

import resource
import socket
from contextlib import suppress
from typing import Any

from twisted.web import http

STALLED = 60.0  # s in which the client takes nothing of what it was sent
HEAD = 20.0  # s until a new connection has brought the head of a request
REQUEST = 60.0  # s for its body, and then for the head of the next; an upload's has as many with each piece


class Connection(http.HTTPChannel):
    """Ends where its client keeps the site waiting: whoever opens many and says nothing would lock everybody out.

    How long nothing of an answer is taken the kernel counts.
    """

    uploading = False
    """Whether what arrives is the body of somebody's upload, which may take hours."""

    def connectionMade(self) -> None:
        super().connectionMade()
        self.setTimeout(HEAD)
        transport: Any = self.transport
        if (handle := transport.getHandle()).family != socket.AF_UNIX:
            handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * STALLED))

    def resetTimeout(self) -> None:
        """With each piece that arrives."""
        if self.uploading:
            super().resetTimeout()

    def allHeadersReceived(self) -> None:
        self.setTimeout(REQUEST)
        super().allHeadersReceived()


def raise_limit() -> None:
    """As many connections as the system allows: each is a file, and 1,024 are what most processes begin with."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError):  # where the system's own bound is lower by now
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
