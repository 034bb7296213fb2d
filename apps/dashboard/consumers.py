"""A viewer's line to a run: what the database has after a number, in order, and no faster than the page can draw."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer, AsyncWebsocketConsumer
from django.http import Http404

from apps.core.access import owned, user_of
from apps.core.address import address_of_socket
from apps.core.pace import Pace
from apps.core.seats import Seats
from apps.core.turns import Turns
from apps.dashboard.ear import Ear
from apps.tuning.live import frames, missed
from apps.tuning.models import TuningRun
from apps.tuning.states import ACTIVE

NOT_THERE, BEHIND, CROWDED = 4404, 4410, 4429
BETWEEN_FRAMES = 0.25  # s
UNASKED = 3.0  # s until the database is read without a doorbell: bells may be lost
SIGN_OF_LIFE = 10.0  # s; and until it is looked again whether the viewer is still signed in
WINDOW = 2  # frames sent and not yet acknowledged
LIMIT = 200  # events a frame
MOST = 2000  # events that a viewer is told one by one; who missed more draws the run anew
SOCKETS = 128  # of one account at a time; each reads the database every few seconds
SEATS = Seats(SOCKETS)
READS, PATIENCE = Turns(2), 60.0  # s
"""Of one account at a time: what they take of the processor, and of the threads that pages need, all others lack."""
PACE = Pace(300, 60.0)
"""Of lines that one address opens: a hundred pages behind it may come back at once, more than once."""


class Gone(Exception):
    """Who opened the line is signed in no more, or the run was deleted."""


class RunConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """Sends {"events", "seq"} and, when nothing happens, {"seq"}; hears {"ack": seq}."""

    channel_layer_alias = None  # its ear listens: a layer of channels' own would be waited for before anything else
    clock: Callable[[], float] = time.monotonic
    ear: Ear | None = None
    run: TuningRun | None = None
    pump: asyncio.Task[None] | None = None
    _seat: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # Not in `disconnect`, of which a consumer that broke never hears.
            if self.pump is not None:
                self.pump.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await self.pump
            if self._seat is not None:
                SEATS.leave(self._seat)
            if self.ear is not None:
                await self.ear.close()

    async def connect(self) -> None:
        self.bell = asyncio.Event()
        self.room = asyncio.Event()
        self.unacknowledged: list[int] = []
        await self.accept()  # a refused handshake would not tell the page why
        if not PACE.allows(address_of_socket(self.scope)):
            await self.close(CROWDED)
            return
        run = await self._owned()
        if run is None:
            await self.close(NOT_THERE)
            return
        if not SEATS.take(run.owner_id):
            await self.close(CROWDED)
            return
        self._seat = run.owner_id
        self.seq = _number(parse_qs(self.scope["query_string"].decode(errors="replace")).get("after", ["0"])[0])
        # A number that was never told is of a database that a backup took the place of.
        if self.seq > run.job.last_seq or await _missed(run, self.seq, MOST):
            await self.close(BEHIND)
            return
        self.ear = Ear(run.pk, self._rung)
        self.bell.set()
        self.pump = asyncio.create_task(self._pump())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **options: Any) -> None:
        """What is no text, or none, is not heard: channels would break the line."""
        if text_data:
            await super().receive(text_data=text_data, **options)

    async def receive_json(self, content: Any, **options: Any) -> None:
        if isinstance(content, dict) and isinstance(ack := content.get("ack"), int):
            self.unacknowledged = [seq for seq in self.unacknowledged if seq > ack]
            if len(self.unacknowledged) < WINDOW:
                self.room.set()

    @classmethod
    async def decode_json(cls, text_data: str) -> Any:
        """None for what is no JSON: a viewer cannot break its line by it."""
        try:
            return await super().decode_json(text_data)
        except (ValueError, RecursionError):
            return None

    def _rung(self, seq: float) -> None:
        """However many bells rang, one read answers them."""
        if seq > self.seq:
            self.bell.set()

    async def _owned(self) -> TuningRun | None:
        self.looked = self.clock()
        found: TuningRun | None = await _find(self.scope["session"], self.scope["url_route"]["kwargs"]["run"])
        self.run = found
        return found

    async def _say(self, content: dict[str, Any]) -> None:
        """Raises Gone where the viewer must not hear it any more, as far as was looked in the last SIGN_OF_LIFE."""
        if self.clock() - self.looked >= SIGN_OF_LIFE and await self._owned() is None:
            raise Gone
        await self.send_json(content)

    async def _pump(self) -> None:
        said = self.clock()
        try:
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.bell.wait(), self._unasked())
                self.bell.clear()
                if await self._drain():
                    said = self.clock()
                elif self.clock() - said >= SIGN_OF_LIFE:
                    await self._say({"seq": self.seq})
                    said = self.clock()
        except asyncio.CancelledError:
            raise
        except Gone:
            await self.close(NOT_THERE)
        except Exception:
            await self.close(1011)  # the page connects again, with its number
            raise

    def _unasked(self) -> float:
        """Of a run that is over little comes, and a look is a connection to the database."""
        return UNASKED if self.run is None or self.run.job.state in ACTIVE else SIGN_OF_LIFE

    async def _drain(self) -> bool:
        """Sends all there is; whether there was something."""
        sent, full = False, True
        while full:
            events, last = await self._in_turn()
            if not events:
                return sent
            await self._wait_for_room()
            self.seq = last
            self.unacknowledged.append(last)
            await self._say({"events": events, "seq": last})
            sent, full = True, len(events) >= LIMIT  # what comes after one that is not full rings
            await asyncio.sleep(BETWEEN_FRAMES)
        return sent

    async def _in_turn(self) -> tuple[list[dict[str, Any]], int]:
        """What there is next; nothing where the account's turn is long in coming: it is asked again."""
        with suppress(TimeoutError):
            async with READS.of(self._seat, PATIENCE):
                return await _read(self.run, self.seq)  # type: ignore[no-any-return]
        return [], self.seq

    async def _wait_for_room(self) -> None:
        while len(self.unacknowledged) >= WINDOW:
            self.room.clear()
            try:
                await asyncio.wait_for(self.room.wait(), SIGN_OF_LIFE)
            except TimeoutError:
                await self._say({"seq": self.seq})


class Nowhere(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Says that there is nothing to hear where no run can be; a line like others, of which an address has so many."""

    channel_layer_alias = None  # see `RunConsumer`

    async def connect(self) -> None:
        await self.accept()
        await self.close(NOT_THERE if PACE.allows(address_of_socket(self.scope)) else CROWDED)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _run_of(session: Any, key: Any) -> TuningRun | None:
    """The run, where whoever has this session owns it now."""
    with suppress(Http404):
        # By its key, anew: in the session as it was read when the line was opened, nobody would ever sign out.
        return owned(TuningRun.objects.select_related("job"), user_of(session.session_key), pk=key)
    return None


def _frames(run: TuningRun, after: int) -> tuple[list[dict[str, Any]], int]:
    return frames(run, after, LIMIT)


# Not in Django's one thread: a slow read of one viewer must not hold up the others.
_find = database_sync_to_async(_run_of, thread_sensitive=False)
_read = database_sync_to_async(_frames, thread_sensitive=False)
_missed = database_sync_to_async(missed, thread_sensitive=False)
