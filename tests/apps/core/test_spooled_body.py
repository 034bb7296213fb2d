"""A body in a file is read from that file; others come as the server tells them."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
from django.http import HttpResponse

from apps.core.spooled_body import BODY, SpooledBodies

EMPTY = {"type": "http.request", "body": b"", "more_body": False}
GONE = {"type": "http.disconnect"}


class Pages(SpooledBodies):
    """Looks at the body and answers without a page."""

    file: Any = None
    content: bytes | None = None

    def create_request(self, scope: Any, body_file: Any) -> Any:
        assert BODY not in scope
        self.file, self.content = body_file, body_file.read()
        return None, HttpResponse(status=204)


async def read(said: list[dict[str, Any]], **scope: Any) -> tuple[Pages, list[dict[str, Any]]]:
    """What was read, and what was answered."""
    pages, answers = Pages(), []

    async def receive() -> dict[str, Any]:
        return said.pop(0)

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    await pages({"type": "http", **scope}, receive, send)
    return pages, answers


@pytest.mark.parametrize("size", [1, 5_000_000])
async def test_it_is_read_where_it_lies_and_closed_in_the_end(size: int) -> None:
    with tempfile.TemporaryFile() as body:
        body.write(b"x" * size)
        body.seek(0)
        pages, answers = await read([EMPTY, GONE], **{BODY: body})
        assert (pages.file, pages.content) == (body, b"x" * size)
        assert answers[0]["status"] == 204
        assert body.closed


async def test_other_bodies_come_as_the_server_tells_them() -> None:
    pages, _ = await read([{**EMPTY, "body": b"abc", "more_body": True}, {**EMPTY, "body": b"de"}, GONE])
    assert pages.content == b"abcde"


async def test_of_a_client_that_goes_away_nothing_is_read() -> None:
    with tempfile.TemporaryFile() as body:
        pages, answers = await read([GONE], **{BODY: body})
        assert (pages.content, answers, body.closed) == (None, [], True)
