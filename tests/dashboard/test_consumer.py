"""The line to a run: everything once, in order, and no more than the page can take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import close_old_connections
from django.test import Client

from apps.core.pace import Pace
from apps.core.seats import Seats
from apps.dashboard import consumers
from apps.dashboard.routing import websocket_urlpatterns
from apps.tuning import services
from apps.tuning.models import Event, TuningRun
from tests.apps.rows import Site

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 30.0
"""s for a frame, or for the end of a line: other tests run beside."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    monkeypatch.setattr(consumers, "BETWEEN_FRAMES", 0.0)
    # Channels keeps connections open for tests inside one transaction; these end theirs, and PostgreSQL minds.
    monkeypatch.setattr("channels.testing.application.no_op", close_old_connections)


@pytest.fixture
def story(transactional_db: None) -> tuple[Site, TuningRun, services.Claim, Any]:
    site = Site()
    return site, *site.claimed()


@database_sync_to_async
def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


class Viewer(WebsocketCommunicator):
    """Waits longer than channels' one second for an answer: other tests run beside."""

    async def connect(self, timeout: float = PATIENCE) -> Any:
        return await super().connect(timeout)

    async def disconnect(self, code: int = 1000, timeout: float = PATIENCE) -> None:
        await super().disconnect(code, timeout)


def line_of(client: Client, run: TuningRun, after: int | str = 0) -> WebsocketCommunicator:
    headers = [(b"cookie", f"{name}={cookie.value}".encode()) for name, cookie in client.cookies.items()]
    sites = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
    return Viewer(sites, f"/ws/runs/{run.pk}/?after={after}", headers)


async def line(run: TuningRun, user: User | None, after: int | str = 0) -> WebsocketCommunicator:
    """Of somebody who just signed in, or of nobody."""
    return line_of(await signed_in(user) if user else Client(), run, after)


async def gather(viewer: WebsocketCommunicator, last: int) -> list[int]:
    """Numbers of the events up to one, acknowledging every frame."""
    numbers: list[int] = []
    while not numbers or numbers[-1] < last:
        frame = await viewer.receive_json_from(timeout=PATIENCE)
        if "events" in frame:
            numbers += [event["seq"] for event in frame["events"]]
            await viewer.send_json_to({"ack": frame["seq"]})
    return numbers


def write(held: services.Claim, events: list[Any]) -> Awaitable[None]:
    return database_sync_to_async(services.write)(held, events)


@database_sync_to_async
def known(run: TuningRun) -> list[int]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))


async def test_everything_comes_once_and_in_order(story: Any) -> None:
    site, run, held, told = story
    viewer = await line(run, site.ada)
    assert (await viewer.connect())[0]
    for _ in range(5):
        await write(held, [told.batch(0.004), told.slot()])
    wanted = await known(run)
    assert await gather(viewer, wanted[-1]) == wanted
    await viewer.disconnect()


async def test_what_is_written_is_read_once_for_each_viewer(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not once more to find that there is nothing: a look is a connection to the database."""
    site, run, held, told = story
    read, looks = consumers._read, []
    monkeypatch.setattr(consumers, "UNASKED", PATIENCE)
    monkeypatch.setattr(consumers, "_read", lambda run, after: looks.append(after) or read(run, after))
    viewer = await line(run, site.ada, after=(await known(run))[-1])
    await viewer.connect()
    for _ in range(10):
        await write(held, [told.batch(0.004), told.slot()])
        await gather(viewer, (await known(run))[-1])
    await viewer.disconnect()
    assert len(looks) <= 10 + 2, "two when it begins: by itself, and when its ear can hear"


async def test_a_viewer_goes_on_after_its_number(story: Any) -> None:
    site, run, held, told = story
    await write(held, [told.batch(0.004), told.batch(0.003), told.batch(0.002)])
    wanted = await known(run)
    middle = wanted[len(wanted) // 2]
    viewer = await line(run, site.ada, after=middle)
    await viewer.connect()
    assert await gather(viewer, wanted[-1]) == [seq for seq in wanted if seq > middle]
    await viewer.disconnect()


async def test_without_acknowledgement_two_frames_come_and_no_third(
    story: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LIMIT", 1)
    site, run, held, told = story
    await write(held, [told.batch(0.004) for _ in range(4)])
    wanted = await known(run)
    viewer = await line(run, site.ada)
    await viewer.connect()
    frames = [await viewer.receive_json_from(timeout=PATIENCE) for _ in range(2)]
    assert await viewer.receive_nothing(timeout=0.3)
    await viewer.send_json_to({"ack": frames[-1]["seq"]})
    seen = [event["seq"] for frame in frames for event in frame["events"]]
    assert seen + await gather(viewer, wanted[-1]) == wanted
    await viewer.disconnect()


async def test_what_comes_while_a_viewer_stalls_is_not_lost(story: Any) -> None:
    site, run, held, told = story
    viewer = await line(run, site.ada)
    await viewer.connect()
    first = await viewer.receive_json_from(timeout=PATIENCE)
    for _ in range(150):  # more bells than a channel layer holds
        await write(held, [told.batch(0.004)])
    await viewer.send_json_to({"ack": first["seq"]})
    wanted = await known(run)
    seen = [event["seq"] for event in first["events"]]
    assert seen + await gather(viewer, wanted[-1]) == wanted
    await viewer.disconnect()


async def test_a_lost_bell_costs_only_time(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "UNASKED", 0.1)
    site, run, held, told = story
    viewer = await line(run, site.ada)
    await viewer.connect()
    await gather(viewer, (await known(run))[-1])
    monkeypatch.setattr("apps.tuning.doorbell._ring", lambda *_: None)
    await write(held, [told.batch(0.004)])
    assert (await gather(viewer, (await known(run))[-1]))[-1] == (await known(run))[-1]
    await viewer.disconnect()


async def test_silence_is_broken_by_a_sign_of_life(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "UNASKED", 0.05)
    monkeypatch.setattr(consumers, "SIGN_OF_LIFE", 0.1)
    site, run, _, _ = story
    last = (await known(run))[-1]
    viewer = await line(run, site.ada, after=last)
    await viewer.connect()
    assert await viewer.receive_json_from(timeout=PATIENCE) == {"seq": last}
    await viewer.disconnect()


async def closes(viewer: WebsocketCommunicator) -> int:
    await viewer.connect()
    message = await viewer.receive_output(timeout=PATIENCE)
    assert message["type"] == "websocket.close"
    return int(message["code"])


@pytest.mark.parametrize("who", [lambda site: site.bob, lambda site: None])
async def test_others_and_strangers_are_told_that_there_is_no_such_run(story: Any, who: Callable[[Site], Any]) -> None:
    site, run, _, _ = story
    assert await closes(await line(run, who(site))) == consumers.NOT_THERE


@pytest.mark.parametrize("path", ["/", "/ws/runs/x/", "/ws/runs/\0", "/elsewhere"])
async def test_where_no_run_can_be_is_told_so_at_the_pace_of_other_lines(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "PACE", Pace(2, 60.0))
    sites = URLRouter(websocket_urlpatterns)
    assert [await closes(Viewer(sites, path)) for _ in range(3)] == [4404, 4404, 4429]


async def closing(viewer: WebsocketCommunicator) -> int:
    """The code by which it is closed, after whatever else it was sent."""
    async with asyncio.timeout(PATIENCE):
        while (message := await viewer.receive_output(timeout=PATIENCE))["type"] == "websocket.send":
            pass
    assert message["type"] == "websocket.close"
    return int(message["code"])


def signs_out(client: Client, site: Site) -> None:
    client.logout()


def loses_its_session(client: Client, site: Site) -> None:
    Session.objects.all().delete()


def changes_its_password_elsewhere(client: Client, site: Site) -> None:
    site.ada.set_password("another long password")
    site.ada.save()


def is_locked_out(client: Client, site: Site) -> None:
    User.objects.filter(pk=site.ada.pk).update(is_active=False)


def is_deleted(client: Client, site: Site) -> None:
    site.ada.delete()


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "UNASKED", 0.05)
    monkeypatch.setattr(consumers, "SIGN_OF_LIFE", 0.1)


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize(
    "happens", [signs_out, loses_its_session, changes_its_password_elsewhere, is_locked_out, is_deleted]
)
async def test_who_is_signed_in_no_more_hears_no_more(story: Any, happens: Callable[[Client, Site], None]) -> None:
    site, run, _, _ = story
    client = await signed_in(site.ada)
    last = (await known(run))[-1]
    viewer, other = line_of(client, run, after=last), await line(run, site.ada, after=last)
    await viewer.connect()
    assert await viewer.receive_json_from(timeout=PATIENCE) == {"seq": last}
    await database_sync_to_async(happens)(client, site)
    assert await closing(viewer) == consumers.NOT_THERE
    await viewer.disconnect()
    await other.connect()
    if happens is signs_out:
        assert await other.receive_json_from(timeout=PATIENCE)  # in another browser she still is
    await other.disconnect()


async def test_nobody_hears_more_because_there_is_much_to_hear(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that tells something all the time has no need of signs of life."""
    monkeypatch.setattr(consumers, "SIGN_OF_LIFE", 0.1)
    monkeypatch.setattr(consumers, "LIMIT", 1)
    monkeypatch.setattr(consumers, "WINDOW", 1000)
    monkeypatch.setattr(consumers, "BETWEEN_FRAMES", 0.02)
    site, run, held, told = story
    await write(held, [told.batch(0.004) for _ in range(100)])
    client = await signed_in(site.ada)
    viewer = line_of(client, run)
    await viewer.connect()
    assert await viewer.receive_json_from(timeout=PATIENCE)
    await database_sync_to_async(client.logout)()
    assert await closing(viewer) == consumers.NOT_THERE
    await viewer.disconnect()


async def test_what_was_deleted_and_is_nobodys_is_no_strangers(story: Any) -> None:
    _, run, _, _ = story
    await database_sync_to_async(TuningRun.objects.filter(pk=run.pk).update)(owner=None)
    assert await closes(await line(run, None)) == consumers.NOT_THERE


@pytest.mark.usefixtures("_often")
async def test_a_line_to_a_run_that_was_deleted_is_closed(story: Any) -> None:
    site, run, _, _ = story
    viewer = await line(run, site.ada)
    await viewer.connect()
    assert await viewer.receive_json_from(timeout=PATIENCE)
    await database_sync_to_async(run.delete)()
    assert await closing(viewer) == consumers.NOT_THERE
    await viewer.disconnect()


async def test_who_is_signed_in_is_not_asked_with_every_frame(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site, run, held, told = story
    asked: list[Any] = []

    async def find(*about: Any, find: Any = consumers._find) -> Any:
        asked.append(about)
        return await find(*about)

    monkeypatch.setattr(consumers, "_find", find)
    monkeypatch.setattr(consumers, "LIMIT", 1)
    await write(held, [told.batch(0.004) for _ in range(20)])
    viewer = await line(run, site.ada)
    await viewer.connect()
    wanted = await known(run)
    assert await gather(viewer, wanted[-1]) == wanted
    assert len(asked) == 1
    await viewer.disconnect()


@pytest.mark.parametrize("after", ["-1", "x", "9" * 40, "%00", "1.5", "٣"])
async def test_an_odd_number_starts_at_the_beginning(story: Any, after: str) -> None:
    site, run, _, _ = story
    viewer = await line(run, site.ada, after=after)
    await viewer.connect()
    wanted = await known(run)
    assert await gather(viewer, wanted[-1]) == wanted
    await viewer.disconnect()


async def test_nonsense_from_a_viewer_is_ignored(story: Any) -> None:
    site, run, held, told = story
    viewer = await line(run, site.ada)
    await viewer.connect()
    for text in ("{", "[]", '{"ack": "x"}', '{"ack": null}', "7", "", "[" * 5000):
        await viewer.send_input({"type": "websocket.receive", "text": text})
    await viewer.send_input({"type": "websocket.receive", "bytes": b"\0"})
    await asyncio.sleep(0)
    await write(held, [told.batch(0.004)])
    wanted = await known(run)
    assert await gather(viewer, wanted[-1]) == wanted
    await viewer.disconnect()


async def test_an_account_has_so_many_lines_at_a_time(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "SEATS", Seats(2))
    site, run, _, _ = story
    viewers = [await line(run, site.ada) for _ in range(2)]
    for viewer in viewers:
        await viewer.connect()
        assert await viewer.receive_json_from(timeout=PATIENCE)
    assert await closes(await line(run, site.ada)) == consumers.CROWDED
    assert await closes(await line(run, site.bob)) == consumers.NOT_THERE
    await viewers[0].disconnect()
    again = await line(run, site.ada)
    await again.connect()
    assert await again.receive_json_from(timeout=PATIENCE)
    await viewers[1].disconnect()
    await again.disconnect()


async def test_a_line_that_breaks_makes_room(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "SEATS", Seats(1))
    site, run, _, _ = story

    def broken(*_: Any) -> None:
        raise ConnectionError("no channel layer")

    with monkeypatch.context() as patch:
        patch.setattr(consumers, "Ear", broken)
        viewer = await line(run, site.ada)
        await viewer.connect()
        with pytest.raises(ConnectionError):
            await viewer.wait(PATIENCE)
    with monkeypatch.context() as patch:
        patch.setattr(consumers.RunConsumer, "receive_json", broken)
        viewer = await line(run, site.ada)
        await viewer.connect()
        await viewer.send_to(text_data="{}")
        with pytest.raises(ConnectionError):
            await viewer.wait(PATIENCE)
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if "_pump" in repr(task)], "nobody reads for it any more"
    again = await line(run, site.ada)
    await again.connect()
    assert await again.receive_json_from(timeout=PATIENCE)
    await again.disconnect()


async def test_who_missed_much_draws_the_run_anew(story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site, run, held, told = story
    await write(held, [told.batch(0.5), told.batch(0.3, operator=1), told.batch(0.2)])
    numbers = await known(run)
    monkeypatch.setattr(consumers, "MOST", len(numbers) - 1)
    assert await closes(await line(run, site.ada)) == consumers.BEHIND
    viewer = await line(run, site.ada, numbers[0])
    await viewer.connect()
    assert await gather(viewer, numbers[-1]) == numbers[1:]
    await viewer.disconnect()


async def test_who_is_ahead_of_a_database_that_was_restored_draws_the_run_anew(story: Any) -> None:
    site, run, held, told = story
    last = (await known(run))[-1]
    assert await closes(await line(run, site.ada, last + 1)) == consumers.BEHIND
    viewer = await line(run, site.ada, last)
    await viewer.connect()
    await write(held, [told.batch(0.004)])
    assert await gather(viewer, last + 1) == (await known(run))[-1:]
    await viewer.disconnect()
