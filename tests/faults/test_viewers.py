"""Viewers of a run on a real site: some that take nothing, and many whose network is cut."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from autobahn.asyncio.websocket import WebSocketClientFactory

from apps.operations.viewer import Viewer
from tests.operations.test_connection import connected
from tests.operations.test_serve import served, signed_in

pytestmark = pytest.mark.faults

SECONDS = float(os.environ.get("VIEWERS_SECONDS", "15"))
"""That a run is looked at by many; the table of faults says an hour, VIEWERS_SECONDS=3600."""


class Reader(Viewer):
    """Takes everything, and notes when each event came."""

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        now = time.monotonic()
        self.factory.heard += [(event["seq"], now) for event in json.loads(payload).get("events", ())]
        super().onMessage(payload, isBinary)


class Stalled(Viewer):
    """Reads no more once it is let in."""

    def onOpen(self) -> None:
        self.transport.pause_reading()


class Claiming(Stalled):
    """Says four times a second, as the quickest page, that it took everything."""

    def onOpen(self) -> None:
        super().onOpen()
        self._claim()

    def _claim(self) -> None:
        if self.state == self.STATE_OPEN:
            self.sendMessage(b'{"ack": 900000000000000000}')
            asyncio.get_running_loop().call_later(0.25, self._claim)


class Watched:
    """Lines of an account to a run."""

    def __init__(self, site: Any, cookie: str, run: str) -> None:
        self.site, self._cookie, self._run = site, cookie.partition(": ")[2], run
        self._transports: list[asyncio.Transport] = []

    async def line(self, kind: type[Viewer], after: int = 0) -> Any:
        """Its factory: `heard` are the numbers of events and when they came, `closed` is done when the line is."""
        address = f"127.0.0.1:{self.site.port}"
        url = f"ws://{address}/ws/runs/{self._run}/?after={after}"
        factory = WebSocketClientFactory(url, origin=f"http://{address}", headers={"Cookie": self._cookie})
        factory.protocol, factory.heard = kind, []
        loop = asyncio.get_running_loop()
        factory.closed = loop.create_future()
        own = socket.socket()
        if issubclass(kind, Stalled):  # what the system takes for it is no stall
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.setblocking(False)
        await loop.sock_connect(own, ("127.0.0.1", self.site.port))
        transport, _ = await loop.create_connection(factory, sock=own)
        self._transports.append(transport)
        return factory

    async def cut(self) -> None:
        """All lines, without a word."""
        for transport in self._transports:
            transport.abort()
        self._transports.clear()
        await asyncio.sleep(0)  # when they are closed


async def until(condition: Callable[[], Any], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s"
        await asyncio.sleep(0.05)


STALLING, OTHERS = 20, 5
EVENT = 2000
"""Bytes: of a batch of eight configurations."""
THERE = 1900
"""Events when somebody comes: nine frames and a half, 3.8 MB."""
HELD = 5 << 19
"""Bytes that the site may hold for a stalled reader: a frame of 400 KB as rows, as text and as it goes out, 1.6 MB."""
STALL = 20.0  # s, of 60, until the site gives up a reader that takes nothing
TOLD = 40
"""Events told one by one, ten in a second."""
LATE = 1.5  # s until an event is told to others: 0.25 between two frames, and what other tests take of the machine

STORY = f"""
import time
from tests.apps.rows import Site
rows = Site()
run, held, told = rows.claimed()

def last():
    return Job.objects.values_list("last_seq", flat=True).get(pk=run.job_id)

def tell(count):
    services.write(held, [told.event("log", level="info", text="x" * {EVENT}) for _ in range(count)])
    return last()

def tell_slowly(count):
    when = []
    for _ in range(count):
        when.append((tell(1), time.monotonic()))
        services.heartbeat(held)
        time.sleep(0.1)
    return when

for _ in range({THERE // 100}):
    tell(100)
result = str(run.pk), last()
"""


class Stalling:
    """A site with an owner's `readers`, and twenty others that take nothing."""

    def __init__(self, watched: Watched, readers: list[Any]) -> None:
        self._watched, self.readers = watched, readers
        self.site = watched.site
        self._files, self._memory = self._descriptors(), self.site.memory("VmRSS")

    async def begin(self) -> None:
        self.began = time.monotonic()
        for number in range(STALLING):
            await self._watched.line(Claiming if number % 2 else Stalled)

    async def late(self) -> float:
        """Seconds in which 99 of 100 events that are told now have come to all readers; endless where they do not come."""
        told = dict(await asyncio.to_thread(self.site.ask, f"result = tell_slowly({TOLD})"))
        last = max(told)
        with suppress(AssertionError):
            await until(lambda: all(one.heard and one.heard[-1][0] >= last for one in self.readers), 10, "the last")
            delays = [came - told[seq] for one in self.readers for seq, came in one.heard if seq in told]
            return float(np.quantile(delays, 0.99))
        return inf

    def grown(self) -> int:
        """Bytes that the site's process took since, at most."""
        return self.site.memory("VmHWM") - self._memory

    def connections(self) -> int:
        return connected(self.site)

    def opened(self) -> int:
        """Descriptors beyond those that there were."""
        return self._descriptors() - self._files

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.site.web.pid}/fd"))


@asynccontextmanager
async def stalling(folder: Path, change: str = "pass") -> AsyncIterator[Stalling]:
    change = f"from tuningsite import connection\nconnection.STALLED = {STALL}\n{change}"
    with served(folder, 3 << 20, change) as site:
        run, last = site.ask(STORY)
        site.server()
        watched = Watched(site, signed_in(site, "ada"), run)
        try:
            readers = [await watched.line(Reader, last) for _ in range(OTHERS)]
            assert await Stalling(watched, readers).late() < inf
            on = Stalling(watched, readers)  # what listening takes is taken
            await on.begin()
            yield on
        finally:
            await watched.cut()


async def left_alone(on: Stalling, late: float) -> None:
    assert late < LATE
    assert time.monotonic() - on.began < STALL, "they stalled meanwhile"
    assert on.grown() < STALLING * HELD
    await until(lambda: on.connections() == OTHERS, 2 * STALL, "the end of those that stall")
    await until(lambda: on.opened() < STALLING / 4, 10, "the end of what was opened for them")
    assert not [one.closed.result() for one in on.readers if one.closed.done()]


async def test_readers_that_stall_cost_others_no_time_and_the_site_a_frame_each_until_it_leaves_them(
    tmp_path: Path,
) -> None:
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        async with stalling(folder) as on:
            late = await on.late()
            if late > LATE and attempt < 2:
                continue  # a machine that others use is late too
            await left_alone(on, late)
            return


CONSUMERS = """
import django
django.setup()
from apps.dashboard import consumers
"""
WITHOUT_A_BRAKE = f"""{CONSUMERS}
async def taken(self):
    pass
connection.Brake.taken, consumers.WINDOW = taken, 10**9
"""
WITHIN_A_TURN = f"""{CONSUMERS}
async def in_turn(self):
    async with consumers.READS.of(self._seat, consumers.PATIENCE):
        await self._wait_for_room()
        return await consumers._read(self.run, self.seq)
consumers.RunConsumer._in_turn = in_turn
"""


@pytest.mark.mutation
async def test_a_site_that_sends_what_nobody_takes_is_noticed(tmp_path: Path) -> None:
    async with stalling(tmp_path, WITHOUT_A_BRAKE) as on:
        await on.late()
        assert on.grown() > STALLING * HELD


@pytest.mark.mutation
async def test_a_site_that_waits_for_those_that_stall_is_noticed(tmp_path: Path) -> None:
    async with stalling(tmp_path, WITHIN_A_TURN) as on:
        assert await on.late() > LATE


MANY = 50
CUT = 2.0  # s that nobody has a network
MORE = 48 << 20
"""Bytes that the site's process may take between the first quarter of the time and its end, however long that is."""


class Looking:
    """Viewers of one run; a network that is cut takes all their lines, and each goes on after its number."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.heard: list[list[int]] = [[] for _ in range(MANY)]
        self._lines: list[Any] = []

    async def come(self) -> None:
        self._lines = [await self._watched.line(Reader, numbers[-1] if numbers else 0) for numbers in self.heard]

    async def cut(self) -> None:
        await self._watched.cut()
        self._take()
        await asyncio.sleep(CUT)

    def refused(self) -> list[str]:
        """Why the site closed lines, of those that are open."""
        return [line.closed.result() for line in self._lines if line.closed.done()]

    def last(self) -> list[int]:
        self._take()
        return [numbers[-1] if numbers else 0 for numbers in self.heard]

    def _take(self) -> None:
        for numbers, line in zip(self.heard, self._lines, strict=False):
            numbers += [seq for seq, _ in line.heard]
            line.heard.clear()


async def looked_at(site: Any) -> tuple[list[list[int]], list[int]]:
    """Numbers that many viewers heard of a run, whose network is cut three times, and those that the database has."""
    site.start_web()
    site.server()
    site.worker()
    site.worker("prepare")
    site.reconciler(every=2)
    job = site.run(seconds=SECONDS)
    run = site.ask(f"result = str(TuningRun.objects.get(job={job!r}).pk)")
    watched = Watched(site, signed_in(site, "owner"), run)
    looking = Looking(watched)
    before = 0
    try:
        await looking.come()
        await until(lambda: site.measured() > 0, 180, "a measurement")
        for _ in range(3):
            await asyncio.sleep(SECONDS / 4)
            before = before or site.memory("VmRSS")
            assert not looking.refused(), site.logs()
            await looking.cut()
            await looking.come()
        over = f"""
from apps.tuning.models import Artifact
from apps.tuning.states import ACTIVE
jobs = Job.objects.filter(pk={job!r}) | Job.objects.filter(run__job={job!r})
result = Artifact.objects.exists() and not jobs.filter(state__in=ACTIVE).exists()
"""
        await until(lambda: site.ask(over), SECONDS + 180, "the end of the run and of its library")
        numbers = site.ask(
            f"result = list(Event.objects.filter(run={run!r}).order_by('seq').values_list('seq', flat=True))"
        )
        await until(lambda: min(looking.last()) >= numbers[-1], 30, "the last event")
        assert not looking.refused(), site.logs()
    finally:
        await watched.cut()
    assert site.memory("VmRSS") - before < MORE
    return looking.heard, numbers


@pytest.mark.tvm
@pytest.mark.timeout(SECONDS + 600)
async def test_many_viewers_of_two_workers_runs_hear_everything_once_though_their_network_is_cut(site: Any) -> None:
    heard, numbers = await looked_at(site)
    assert all(one == numbers for one in heard)
    for log in [*(site.folder / "logs").glob("*"), *(site.data / "logs").glob("*")]:
        assert "locked" not in log.read_text(errors="replace"), log.name
    site.assert_nothing_lost_or_doubled()
