"""A client's connection: how long it may stand still, and how much a viewer may say."""
# mypy: disable-error-code=no-untyped-call
# (most of Twisted has no types)

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import time
from contextlib import suppress
from math import inf
from typing import Any

from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.protocol import connectionDone
from twisted.web import http

from apps.core.address import client_of
from apps.core.seats import Seats

STALLED = 60.0  # s in which the client takes nothing of what it was sent
HEAD = 20.0  # s until a new connection has brought the head of a request
REQUEST = 60.0  # s for its body, and then for the head of the next; an upload's has as many with each piece
MINUTE = 60.0
SAID = 16 << 10  # bytes that a viewer says in a minute; a page acknowledges four frames a second, in thirty bytes each
CLIENTS = Seats(1024)
"""Connections of an address, behind which an office may be; what each brings and leaves unfinished lies in memory."""
FULL = "%s has %d connections, and gets no more; where that is a proxy before this site, name it in PROXIES"
LOG = logging.getLogger(__name__)


def _leave(transport: Any) -> None:
    """Gives up its client's place, as whichever protocol it ends."""
    if (client := vars(transport).pop("seated", None)) is not None:
        CLIENTS.leave(client)


class Connection(http.HTTPChannel):
    """Ends where its client keeps the site waiting, or has as many: whoever opens many and says nothing would lock everybody
    out.

    How long nothing of an answer is taken the kernel counts.
    """

    uploading = False
    """Whether what arrives is the body of somebody's upload, which may take hours."""
    _told = -inf

    def connectionMade(self) -> None:
        super().connectionMade()
        self.setTimeout(HEAD)
        transport: Any = self.transport
        if (handle := transport.getHandle()).family != socket.AF_UNIX:
            handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * STALLED))
            if (client := client_of(transport.getPeer().host)) is None:
                return
            if CLIENTS.take(client):
                transport.seated = client
                return
            transport.abortConnection()
            if (now := time.monotonic()) >= Connection._told + MINUTE:
                Connection._told = now
                LOG.warning(FULL, client, CLIENTS.most)

    def connectionLost(self, reason: Any = connectionDone) -> None:
        _leave(self.transport)
        super().connectionLost(reason)

    def resetTimeout(self) -> None:
        """With each piece that arrives."""
        if self.uploading:
            super().resetTimeout()

    def allHeadersReceived(self) -> None:
        self.setTimeout(REQUEST)
        super().allHeadersReceived()


class Brake:
    """What a connection has pause until its client has taken what was written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._taken = asyncio.Event()
        self._taken.set()

    def pauseProducing(self) -> None:
        self._taken.clear()

    def resumeProducing(self) -> None:
        self._taken.set()

    stopProducing = resumeProducing

    async def taken(self) -> None:
        """Until more can be written, or nothing can any more."""
        await self._taken.wait()


class Line(Brake, WebSocketProtocol):  # type: ignore[misc]
    """A viewer's websocket, broken off where it says much: what comes faster than it is heard lies in memory, and everybody
    waits while it is read. What it acknowledges and does not take is not sent on top of it."""

    _said, _since = 0, 0.0

    def connectionMade(self) -> None:
        super().connectionMade()
        self.transport.unregisterProducer()  # the connection of the request that it was
        self.transport.registerProducer(self, True)

    def connectionLost(self, reason: Any) -> None:
        _leave(self.transport)
        self.resumeProducing()
        super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:
        if self.state not in (self.STATE_CONNECTING, self.STATE_CLOSED):  # who is being closed may go on talking
            if (now := time.monotonic()) - self._since >= MINUTE:
                self._said, self._since = 0, now
            self._said += len(data)
            if self._said > SAID:
                self.dropConnection(abort=True)
                return
        super().dataReceived(data)


def raise_limit() -> None:
    """As many connections as the system allows: each is a file, and 1,024 are what most processes begin with."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError):  # where the system's own bound is lower by now
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
