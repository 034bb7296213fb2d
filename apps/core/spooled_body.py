"""Request bodies that the server keeps in a file, read by the application a piece at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO

from apps.core.body_limit import Application, Message, Receive, Scope, Send

BODY = "tuningsite.body"
"""The file, in a request's scope."""
PIECE = 1 << 16


class SpooledBody:
    """Puts the file in the place of the empty body that the server tells."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file: BinaryIO | None = scope.pop(BODY, None)
        await self._app(scope, receive if file is None else _pieces(file, receive), send)


def _pieces(file: BinaryIO, receive: Receive) -> Callable[[], Awaitable[Message]]:
    more = True

    async def piece() -> dict[str, Any]:
        nonlocal more
        if not more:
            return dict(await receive())
        await asyncio.sleep(0)  # a large file must not keep other requests waiting
        try:
            data = file.read(PIECE)
        except ValueError:  # closed, as the client went away
            return {"type": "http.disconnect"}
        more = len(data) == PIECE
        if not more:
            file.close()  # its room on the disk is free while the answer is made
            await receive()  # the server's own word that the body is over
        return {"type": "http.request", "body": data, "more_body": more}

    return piece
