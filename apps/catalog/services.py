"""Uploads: the only writer of networks' files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction

from apps.catalog.models import Network
from apps.catalog.signals import network_added
from apps.core.content import Stored, TooLarge, keep
from apps.core.errors import Refused


def create_network(owner: Any, name: str, chunks: Iterable[bytes]) -> Network:
    """Streams an upload to the disk and has it inspected; the same content again is the same network.

    Nothing of the content is looked at here. Raises Refused for a wrong ending, too many bytes,
    no bytes or a full disk.
    """
    shown = _shown(name)
    stored = _stored(shown, chunks)
    try:
        with transaction.atomic():
            network, new = Network.objects.select_for_update().get_or_create(
                owner=owner, sha256=stored.sha256, defaults={"name": shown, "size": stored.size}
            )
            if new or network.state == Network.State.REJECTED:
                Network.objects.filter(pk=network.pk).update(state=Network.State.INSPECTING, error="", next_step="")
                network.refresh_from_db()
                network_added.send(Network, network=network)
    except DatabaseError as error:
        raise Refused(shown, f"it cannot be kept ({error})", "try again") from error
    return network


def _shown(name: str) -> str:
    file = PurePosixPath(name.replace("\\", "/")).name
    if not file.lower().endswith(".onnx"):
        raise Refused(file[:200] or "no name", "it is not an ONNX file", "export the network as .onnx and upload that")
    kept = "".join(letter for letter in file[: -len(".onnx")] if letter.isprintable()).strip()
    return kept[:200] or "network"


def _stored(shown: str, chunks: Iterable[bytes]) -> Stored:
    limit = settings.UPLOAD_LIMIT
    try:
        stored = keep(chunks, Path(settings.DATA_DIR) / "networks", ".onnx", limit)
    except TooLarge:
        raise Refused(shown, f"it is larger than {limit / 1e9:g} GB", "upload a smaller network") from None
    except OSError as error:
        raise Refused(
            shown, f"it cannot be written ({error.strerror})", "make room on the server's disk, try again"
        ) from error
    if not stored.size:
        raise Refused(shown, "it is empty", "export the network again")
    return stored
