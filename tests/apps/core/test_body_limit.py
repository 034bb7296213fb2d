"""Bodies over the limit get 413, declared or not, and never reach the application whole."""

from __future__ import annotations

from typing import Any

import pytest

from apps.core.body_limit import BodyLimit


async def ask(path: str, chunks: list[bytes], length: bytes | None) -> tuple[int, int]:
    """Status, and bytes that the application read."""
    read, sent, waiting = 0, [], list(chunks)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal read
        more = True
        while more:
            message = await receive()
            read += len(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200})

    async def receive() -> dict[str, Any]:
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [] if length is None else [(b"content-length", length)]
    scope = {"type": "http", "path": path, "headers": headers}
    await BodyLimit(app, limit=100, uploads=("/networks/",), upload_limit=1000)(scope, receive, send)
    return sent[0]["status"], read


@pytest.mark.parametrize(
    ("path", "chunks", "length", "status", "read"),
    [
        ("/", [b"x" * 100], b"100", 200, 100),
        ("/", [b"x" * 101], b"101", 413, 0),
        ("/", [b"x" * 60] * 9, None, 413, 60),
        ("/", [b"x" * 60] * 9, b"10", 413, 60),
        ("/", [b"x"], b"-1", 413, 0),
        ("/", [b"x"], b"9" * 30, 413, 0),
        ("/networks/", [b"x" * 500] * 2, b"1000", 200, 1000),
        ("/networks/", [b"x" * 500] * 3, b"1000", 413, 1000),
        ("/networks/", [b"x" * 500] * 3, b"1001", 413, 0),
        ("/networks/", [b"x" * 60] * 9, None, 413, 60),
    ],
)
async def test_a_body_is_let_through_or_stopped(path: str, chunks: Any, length: Any, status: int, read: int) -> None:
    assert await ask(path, chunks, length) == (status, read)
