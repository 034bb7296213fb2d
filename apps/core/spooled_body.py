"""Django for a server that keeps request bodies in files: what lies in one is read there, and not copied to another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler

BODY = "tuningsite.body"
"""The file, in a request's scope; from then on Django's to close."""


@dataclass(frozen=True)
class _Spooled:
    """What the server says, beside the file that has the body."""

    file: BinaryIO
    receive: Callable[[], Awaitable[Any]]

    async def __call__(self) -> Any:
        return await self.receive()


class SpooledBodies(ASGIHandler):
    """Takes the file in the place of the empty body that the server tells."""

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        file = scope.pop(BODY, None)
        await super().handle(scope, receive if file is None else _Spooled(file, receive), send)

    async def read_body(self, receive: Any) -> Any:
        if not isinstance(receive, _Spooled):
            return await super().read_body(receive)
        if (await receive())["type"] == "http.disconnect":
            receive.file.close()
            raise RequestAborted
        return receive.file
