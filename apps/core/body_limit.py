"""Large request bodies are stopped before Django, which would put them on the disk whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]


class _TooLarge(Exception):
    """The body went over the limit while it was read."""


class BodyLimit:
    """Answers 413 to a body of more than `limit` bytes, `upload_limit` under the paths of `uploads`.

    Without a length there too it is `limit`: Django reads no form of unknown size, however much of it comes.
    """

    def __init__(self, app: Application, *, limit: int, uploads: Sequence[str], upload_limit: int) -> None:
        self._app = app
        self._limit, self._uploads, self._upload_limit = limit, tuple(uploads), upload_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = _declared(scope)
        limit = self._upload_limit if declared and scope["path"].startswith(self._uploads) else self._limit
        if declared is None or declared > limit:
            await _refuse(send)
            return
        started = False
        got = 0

        async def counted() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > limit:
                raise _TooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, counted, watched)
        except _TooLarge:
            if not started:
                await _refuse(send)


def _declared(scope: Scope) -> int | None:
    """The Content-Length, 0 without one, None for one that is no length."""
    value = dict(scope.get("headers", ())).get(b"content-length", b"0")
    return int(value) if value.isdigit() and len(value) < 20 else None


async def _refuse(send: Send) -> None:
    body = b"The request is too large.\n"
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
