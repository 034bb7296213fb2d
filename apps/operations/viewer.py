"""A viewer without a browser: follows a run's websocket and acknowledges, as the page does. Started by `viewer_cost`,
which hands the cookie over on standard input."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

from autobahn.asyncio.websocket import WebSocketClientFactory, WebSocketClientProtocol


class Viewer(WebSocketClientProtocol):  # type: ignore[misc]
    """Takes every frame and says so, until the site has no more; refused or not let in at all it ends too."""

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        frame: dict[str, Any] = json.loads(payload)
        if "events" in frame:
            self.sendMessage(json.dumps({"ack": frame["seq"]}).encode())

    def onClose(self, wasClean: bool, code: int | None, reason: str | None) -> None:
        self.factory.closed.set_result(f"the site closed the connection: {code} {reason or ''}".rstrip())


async def follow(url: str, cookie: str) -> str:
    """Why the connection was closed, once it is."""
    parts = urlsplit(url)
    factory = WebSocketClientFactory(url, origin=f"http://{parts.netloc}", headers={"Cookie": cookie})
    factory.protocol = Viewer
    factory.closed = asyncio.get_running_loop().create_future()
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    await asyncio.get_running_loop().create_connection(factory, host, port)
    closed: str = await factory.closed
    return closed


if __name__ == "__main__":
    os.nice(10)  # a viewer looks on; it is not what the machine is for
    sys.exit(asyncio.run(follow(sys.argv[1], sys.stdin.read())))
