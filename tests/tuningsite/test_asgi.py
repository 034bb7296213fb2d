"""Websockets as the site's server has them."""

from __future__ import annotations

from uuid import uuid4

import pytest
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.db import close_old_connections

from apps.core.pace import Pace
from apps.dashboard import consumers
from tuningsite.asgi import application

TOO_MANY, NOT_THERE, FOREIGN = 4429, 4404, 4403


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch, settings) -> None:
    """Lines of this test's own, two from an address."""
    monkeypatch.setattr(consumers, "PACE", Pace(2, 60.0))
    monkeypatch.setattr("channels.testing.application.no_op", close_old_connections)
    settings.TLS = True


async def closes(
    peer: str, origin: bytes = b"http://localhost:8000", cookie: bytes = b"", host: bytes = b"localhost:8000"
) -> int | None:
    """The code that a line to a run ends with, of somebody behind the proxy; None where the site did not take it at all."""
    headers = [(b"host", host), (b"origin", origin), (b"x-forwarded-for", peer.encode()), (b"cookie", cookie)]
    viewer = WebsocketCommunicator(application, f"/ws/runs/{uuid4()}/", headers)
    viewer.scope["client"] = ["127.0.0.1", 4711]
    accepted, _ = await viewer.connect(timeout=30)
    if not accepted:
        return None
    closed = await viewer.receive_output(timeout=30)
    await viewer.disconnect(timeout=30)
    return int(closed["code"])


async def test_a_peer_that_opens_too_many_lines_is_refused_before_the_database_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This test may not ask it: anything that does breaks here."""
    monkeypatch.setattr(consumers, "PACE", Pace(0, 60.0))
    assert await closes("203.0.113.5", cookie=f"{settings.SESSION_COOKIE_NAME}={'x' * 32}".encode()) == TOO_MANY


@pytest.mark.django_db(transaction=True)
async def test_others_may_open_theirs_meanwhile() -> None:
    assert [await closes("203.0.113.5") for _ in range(3)] == [NOT_THERE, NOT_THERE, TOO_MANY]
    assert await closes("203.0.113.6") == NOT_THERE


@pytest.mark.parametrize(
    ("origin", "host", "tls"),
    [
        (b"https://elsewhere.example.com", b"localhost:8000", False),
        (b"http://localhost:9000", b"localhost:8000", False),
        (
            b"http://elsewhere.example.com",
            b"elsewhere.example.com",
            False,
        ),  # whose name its owner lets mean this machine
        (b"http://localhost:9000", b"localhost:9000", True),
        (b"http://a:99999", b"localhost:8000", False),
        (b"http://a:b", b"localhost:8000", False),
        (b"", b"localhost:8000", False),
    ],
)
async def test_a_page_of_elsewhere_is_told_that_it_opens_none(origin: bytes, host: bytes, tls: bool, settings) -> None:
    settings.TLS = tls
    assert await closes("203.0.113.5", origin, host=host) == FOREIGN


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("origin", "tls"), [(b"http://localhost:9000", False), (b"https://localhost:9000", True)])
async def test_a_page_of_the_host_that_it_asks_opens_its_line(origin: bytes, tls: bool, settings) -> None:
    """A tunnel from another port, or a proxy, hands on what it is asked for."""
    settings.TLS = tls
    assert await closes("203.0.113.5", origin, host=b"localhost:9000") == NOT_THERE
