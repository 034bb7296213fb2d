"""A viewer's ear at the doorbell of a run. It waits in a task of its own: the queue's server may be long in answering, and
the viewer sees what the database has meanwhile."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from channels.layers import get_channel_layer

from apps.core.queue_server import PATIENCE
from apps.tuning.doorbell import group

AGAIN = 30.0  # s until a server that refused is asked again
NOBODY = group("nobody")

log = logging.getLogger(__name__)

_TASKS: set[asyncio.Task[None]] = set()  # a loop alone does not keep them
_T = TypeVar("_T")


class Ear:
    """Calls `rung` with the number of each ring from now on, and once, when it can hear, with infinity: there may be
    something that rang before. Make it in a running loop; `close` at last."""

    def __init__(self, run_id: Any, rung: Callable[[float], None]) -> None:
        self._group, self._rung = group(run_id), rung
        self._idle = self._closed = False
        self._task = asyncio.create_task(self._listen())
        _TASKS.add(self._task)
        self._task.add_done_callback(_TASKS.discard)

    async def close(self) -> None:
        """Soon. What the server does not answer now ends when it does: a connection that is broken off while it is made
        stays half made, for all viewers."""
        self._closed = True
        if self._idle:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=PATIENCE)

    async def _listen(self) -> None:
        layer = get_channel_layer()
        while not self._closed:
            try:
                await self._hear(layer)
            except Exception as error:  # whatever the layer's transport raises
                log.warning("doorbell of %s: %s", self._group, error)
                await self._while_idle(asyncio.sleep(AGAIN))

    async def _hear(self, layer: Any) -> None:
        # A server that is away is to refuse this: of a channel that it refuses the layer keeps the queue for ever.
        await layer.group_send(NOBODY, {"type": "run.doorbell", "seq": 0})
        channel = await layer.new_channel()
        try:
            await layer.group_add(self._group, channel)
            self._rung(math.inf)
            while True:
                # Where it was closed before, `receive` is cancelled too: nothing else takes the channel away.
                message = await self._while_idle(layer.receive(channel))
                self._rung(message["seq"])
        finally:
            await layer.group_discard(self._group, channel)

    async def _while_idle(self, waiting: Awaitable[_T]) -> _T:
        if self._closed:
            self._task.cancel()
        self._idle = True
        try:
            return await waiting
        finally:
            self._idle = False
