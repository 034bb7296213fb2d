"""Tells whoever watches a run that there is something new to read; what, stands in the database."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

log = logging.getLogger(__name__)


def group(run_id: Any) -> str:
    """The channel layer's group of one run."""
    return f"run.{run_id}"


def ring_after_commit(run_id: Any, seq: int) -> None:
    """A lost ring costs nothing but time: viewers look by themselves every few seconds."""
    transaction.on_commit(partial(_ring, run_id, seq))


def _ring(run_id: Any, seq: int) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(layer.group_send)(group(run_id), {"type": "run.doorbell", "seq": seq})
    except Exception as error:  # whatever the layer's transport raises, what was written stays written
        log.warning("doorbell of run %s: %s", run_id, error)
