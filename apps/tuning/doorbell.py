"""Tells whoever watches a run that there is something new to read; what, stands in the database."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from apps.core.queue_server import HUNG, PATIENCE

log = logging.getLogger(__name__)


def group(run_id: Any) -> str:
    """The channel layer's group of one run."""
    return f"run.{run_id}"


def ring_after_commit(run_id: Any, seq: int) -> None:
    """A lost ring costs nothing but time: viewers look by themselves every few seconds."""
    transaction.on_commit(partial(_ring, run_id, seq))


def _ring(run_id: Any, seq: int) -> None:
    layer = get_channel_layer()
    if layer is None or HUNG:
        return

    async def ring() -> None:
        await asyncio.wait_for(layer.group_send(group(run_id), {"type": "run.doorbell", "seq": seq}), PATIENCE)

    try:
        async_to_sync(ring)()
    except TimeoutError:
        HUNG.note()
        log.warning("doorbell of run %s: no answer within %g s", run_id, PATIENCE)
    except Exception as error:  # whatever the layer's transport raises, what was written stays written
        log.warning("doorbell of run %s: %s", run_id, error)
