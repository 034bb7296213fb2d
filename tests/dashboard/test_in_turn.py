"""Of an account a few pages and downloads at a time, through the site as its server has it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import OperationalError
from django.test import Client

from apps.core.turns import Turns
from apps.dashboard import in_turn
from apps.tuning.models import TuningRun
from tests.apps.rows import Site
from tuningsite.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)


@database_sync_to_async
def _signed_in() -> tuple[TuningRun, dict[str, bytes]]:
    """A run of ada's, and the cookies of everybody."""
    rows, cookies = Site(), {}
    for user in (rows.ada, rows.bob):
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        cookies[user.username] = f"{name}={client.cookies[name].value}".encode()
    return rows.run(), cookies


async def asked(path: str, cookie: bytes = b"", method: str = "GET", accept: bytes = b"*/*") -> tuple[int, bytes]:
    """The status of the answer, and its body."""
    headers = [(b"host", b"localhost"), (b"cookie", cookie), (b"accept", accept)]
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": headers,
        "client": ["127.0.0.1", 1],
    }
    site = ApplicationCommunicator(application, scope)
    await site.send_input({"type": "http.request", "body": b""})
    start, body, more = await site.receive_output(30), b"", True
    while more:
        piece = await site.receive_output(30)
        body, more = body + piece.get("body", b""), piece.get("more_body", False)
    await site.send_input({"type": "http.disconnect"})
    await site.wait(30)
    return start["status"], body


@pytest.mark.parametrize("address", ["", "snapshot.json", "downloads/report.html", "downloads/log.jsonl"])
async def test_who_asks_for_more_than_is_made_at_a_time_is_told_and_others_are_answered(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, cookies = await _signed_in()
    path = f"/runs/{run.pk}/{address}"
    turns = Turns(1)
    monkeypatch.setattr(in_turn, "TURNS", dict.fromkeys(in_turn.TURNS, turns))
    monkeypatch.setattr(in_turn, "PATIENCE", 0.0)
    async with turns.of(run.owner_id, 0.0):
        status, body = await asked(path, cookies["ada"])
        assert (status, b"Next step: wait until some of its pages and downloads are done" in body) == (429, True)
        assert (await asked(path, cookies["ada"], "get"))[0] == 429
        status, body = await asked(path, cookies["ada"], accept=b"text/html,*/*;q=0.8")
        assert (status, b"<h1>Too much at once</h1>" in body, b"Next step: wait until" in body) == (429, True, True)
        assert (await asked(path, cookies["bob"]))[0] == 404
        assert (await asked(path))[0] == 302
        assert (await asked("/", cookies["ada"]))[0] == 200
    assert (await asked(path, cookies["ada"]))[0] == 200
    assert not turns._taken


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_form_that_takes_its_time_waits_its_turn_and_an_upload_does_not(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, cookies = await _signed_in()
    monkeypatch.setattr(in_turn, "PATIENCE", 0.0)
    async with in_turn.PAGES.of(run.owner_id, 0.0), in_turn.PAGES.of(run.owner_id, 0.0):
        for path in ("/runs/new", f"/networks/{run.network_id}/"):
            assert (await asked(path, cookies["ada"], method))[0] == 429
        assert (await asked("/networks/", cookies["ada"], method))[0] == (429 if method == "GET" else 403)


async def test_who_waits_for_a_turn_has_it_when_one_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    run, cookies = await _signed_in()
    turns = Turns(1)
    monkeypatch.setattr(in_turn, "TURNS", {"run": turns})
    async with turns.of(run.owner_id, 0.0):
        waiting = asyncio.create_task(asked(f"/runs/{run.pk}/", cookies["ada"]))
        assert (await asked("/", cookies["ada"]))[0] == 200
        assert not waiting.done()
    assert (await waiting)[0] == 200


async def test_who_reads_a_page_slowly_keeps_nobody_waiting_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    run, cookies = await _signed_in()
    turns, reading = Turns(1), asyncio.Event()
    monkeypatch.setattr(in_turn, "PAGES", turns)
    monkeypatch.setattr(in_turn, "TURNS", {"run": turns})
    monkeypatch.setattr(in_turn, "PATIENCE", 5.0)
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": f"/runs/{run.pk}/", "client": ["127.0.0.1", 1],
        "headers": [(b"host", b"localhost"), (b"cookie", cookies["ada"])],
    }  # fmt: skip
    told: list[str] = []
    asked_before: list[int] = []

    async def receive() -> Any:
        asked_before.append(1)
        await asyncio.sleep(0 if len(asked_before) == 1 else 60)
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        told.append(message["type"])
        await reading.wait()

    slow = asyncio.create_task(application(scope, receive, send))
    while not told:
        await asyncio.sleep(0.01)
    assert (await asked(scope["path"], cookies["ada"]))[0] == 200
    reading.set()
    await slow
    assert not turns._taken


def test_every_address_that_waits_its_turn_is_one_of_the_site() -> None:
    from apps.dashboard.urls import urlpatterns

    assert set(in_turn.TURNS) <= {pattern.name for pattern in urlpatterns}


async def test_while_nobody_can_say_whose_a_request_is_it_waits_for_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page itself says what is wrong."""
    run, cookies = await _signed_in()

    def lost(session: str) -> Any:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(in_turn, "user_of", lost)
    assert (await asked(f"/runs/{run.pk}/", cookies["ada"]))[0] == 200
