"""A body in a file reaches the application whole, in pieces, and after it what the server says."""

from __future__ import annotations

import io
from typing import Any

import pytest

from apps.core.spooled_body import BODY, PIECE, SpooledBody


async def read(body: Any, said: list[dict[str, Any]]) -> tuple[list[int], str]:
    """Sizes of the pieces that the application got, and the kind of the message after them."""
    sizes: list[int] = []
    after = ""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal after
        assert BODY not in scope
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                after = message["type"]
                return
            sizes.append(len(message["body"]))
            more = message["more_body"]
        after = (await receive())["type"]

    async def receive() -> dict[str, Any]:
        return said.pop(0)

    async def send(message: dict[str, Any]) -> None:
        raise AssertionError(message)

    await SpooledBody(app)({"type": "http"} | ({BODY: body} if body else {}), receive, send)
    return sizes, after


EMPTY = {"type": "http.request", "body": b"", "more_body": False}
GONE = {"type": "http.disconnect"}


@pytest.mark.parametrize("size", [1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
async def test_it_is_read_in_pieces_and_the_servers_own_body_is_passed_over(size: int) -> None:
    body = io.BytesIO(b"x" * size)
    sizes, after = await read(body, [EMPTY, GONE])
    assert sum(sizes) == size
    assert max(sizes) <= PIECE
    assert after == "http.disconnect"
    assert body.closed


async def test_other_bodies_come_as_the_server_tells_them() -> None:
    assert await read(None, [{**EMPTY, "body": b"abc"}, GONE]) == ([3], "http.disconnect")


async def test_a_client_that_goes_away_is_said() -> None:
    body = io.BytesIO(b"x" * PIECE)
    body.close()
    assert await read(body, []) == ([], "http.disconnect")
