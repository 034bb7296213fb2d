"""Lines to a run while the queue's server takes what is said to it and never answers."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from channels.layers import get_channel_layer

from apps.core import queue_server
from apps.dashboard import consumers, ear
from apps.operations.queue_address import socket_path, url_of
from tests.dashboard.test_consumer import gather, known, line, signed_in, story, write
from tests.running import Running

__all__ = ["signed_in", "story"]
pytestmark = pytest.mark.django_db(transaction=True)


def layers(address: str) -> dict[str, Any]:
    hosts = {"hosts": [{"address": address, "socket_timeout": None}]}
    return {"default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": hosts}}


@pytest.fixture
def hung(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    monkeypatch.setattr(consumers, "UNASKED", 60.0)
    (tmp_path / "site").mkdir()
    running = Running(tmp_path / "site")
    (running.data / "queue_password").write_text("word")
    server, address = running.server(), url_of(socket_path(running.data), "word")
    settings.CHANNEL_LAYERS = layers(address)
    server.send_signal(signal.SIGSTOP)
    try:
        yield server
    finally:
        running.close()


async def test_a_line_tells_what_the_database_has_and_hears_bells_when_the_server_answers(
    story: Any, hung: subprocess.Popen[bytes]
) -> None:
    site, run, held, told = story
    viewers = [await line(run, site.ada) for _ in range(2)]
    for viewer in viewers:
        await viewer.connect()
        await gather(viewer, (await known(run))[-1])
    hung.send_signal(signal.SIGCONT)
    await write(held, [told.batch(0.004)])
    wanted = await known(run)
    for viewer in viewers:
        assert await gather(viewer, wanted[-1]) == wanted[-1:]
        await viewer.disconnect()


async def test_who_left_meanwhile_is_not_rung_for_when_the_server_answers(
    story: Any, hung: subprocess.Popen[bytes], settings: Any
) -> None:
    site, run, _, _ = story
    for _ in range(2):
        viewer = await line(run, site.ada)
        await viewer.connect()
        await gather(viewer, (await known(run))[-1])
        await asyncio.wait_for(viewer.disconnect(), 20)  # of one that never answers
    left = set(ear._TASKS)
    assert len(left) == 2
    hung.send_signal(signal.SIGCONT)
    await asyncio.wait_for(asyncio.wait(left), 20)
    with queue_server.client(settings.CHANNEL_LAYERS["default"]["CONFIG"]["hosts"][0]["address"]) as client:
        assert client.pubsub_channels() == []


async def test_of_a_server_that_is_away_no_try_leaves_a_queue(
    settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(ear, "AGAIN", 0.0)
    settings.CHANNEL_LAYERS = layers(f"unix://{tmp_path}/nobody")
    listening = ear.Ear("a run", lambda seq: None)
    async with asyncio.timeout(20):
        while len(caplog.records) < 3:
            await asyncio.sleep(0)
    await listening.close()
    layer: Any = get_channel_layer()
    assert (layer.channels, layer.groups) == ({}, {})
