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
from apps.core.errors import Refused, TooBig
from apps.core.full_disk import unkept, unwritten

ONNX, TORCH_EXPORT = ".onnx", ".pt2"


def create_network(owner: Any, name: str, chunks: Iterable[bytes]) -> Network:
    """Streams an upload to the disk and has it inspected; the same content again is the same network.

    Nothing of the content is looked at here; a torch.export file is converted first, by a worker's child. Raises Refused
    for a wrong ending, too many bytes, no bytes, a full disk or a full account.
    """
    file, ending = known_file(name)
    stored = _stored(file, ending, chunks)
    try:
        with transaction.atomic():
            network, new = _of(owner, file, ending, stored)
            if new or network.state == Network.State.REJECTED:
                Network.objects.filter(pk=network.pk).update(state=Network.State.INSPECTING, error="", next_step="")
                network.refresh_from_db()
                network_added.send(Network, network=network, uploaded=True)
    except DatabaseError as error:
        raise unkept(error, file, "it cannot be kept", "try again") from error
    return network


def _of(owner: Any, file: str, ending: str, stored: Stored) -> tuple[Network, bool]:
    """Inside a transaction: the owner's network of this content, and whether it is new."""
    source = stored.sha256 if ending == TORCH_EXPORT else ""
    rows = Network.objects.select_for_update()
    converted = rows.filter(owner=owner, source=source).first() if source else None
    if converted is not None:
        if converted.state != Network.State.REJECTED:
            return converted, False
        # Anew: what it was converted to is swept away, and so is what was uploaded as something else and is this very file.
        twins = rows.filter(owner=owner, sha256=source, state=Network.State.REJECTED)
        twins.exclude(pk=converted.pk).delete()
        Network.objects.filter(pk=converted.pk).update(sha256=source, size=stored.size)
    kind = {"source": source, "file_name": _kept_name(file)}
    shown = {"name": _shown(file, ending), "size": stored.size}
    network, new = rows.get_or_create(owner=owner, sha256=stored.sha256, defaults={**shown, **kind})
    if not new and network.state == Network.State.REJECTED:  # perhaps for its ending, which is another one now
        Network.objects.filter(pk=network.pk).update(**kind)
        network.refresh_from_db()
    return network, new


def keep_converted(network: Network, stored: Stored) -> None:
    """Inside a transaction: the torch.export file is the ONNX file `stored` from now on, and inspected as any other.

    A second call for the same network changes nothing.
    """
    if not network.unconverted:
        return
    row = Network.objects.filter(pk=network.pk)
    twin = Network.objects.filter(owner=network.owner, sha256=stored.sha256).first()
    if twin is not None:
        row.update(
            state=Network.State.REJECTED, error=f"it is the same network as {twin.name}", next_step="use that one"
        )
        return
    row.update(sha256=stored.sha256, size=stored.size)
    network.refresh_from_db()
    network_added.send(Network, network=network)


def known_file(name: str) -> tuple[str, str]:
    """The file's name without folders and what cannot be printed, and its ending. Raises Refused for others."""
    bare = PurePosixPath(name.replace("\\", "/")).name
    file = "".join(letter for letter in bare if letter.isprintable()).strip()
    ending = next((ending for ending in (ONNX, TORCH_EXPORT) if file.lower().endswith(ending)), None)
    if ending is None:
        raise Refused(file[:200] or "no name", "it is not an ONNX file", "export the network as .onnx and upload that")
    if ending == TORCH_EXPORT and not settings.ALLOW_TORCH_EXPORT:
        raise Refused(
            file[-200:],
            "torch.export files are off on this site: loading one can run code of whoever made it, held back by nothing "
            "but a sandbox",
            "export the network as .onnx and upload that, or have who runs this site set ALLOW_TORCH_EXPORT=1",
        )
    return file, ending


def holds_the_same(network: Network, name: str) -> bool:
    """Whether an upload of this name, which led to the network, was of a file that was there under another name."""
    return network.file_name not in ("", _kept_name(known_file(name)[0]))


def _kept_name(file: str) -> str:
    return file[-200:]


def _shown(file: str, ending: str) -> str:
    return file[: -len(ending)].strip()[:200] or "network"


def _stored(shown: str, ending: str, chunks: Iterable[bytes]) -> Stored:
    limit = settings.UPLOAD_LIMIT
    try:
        stored = keep(chunks, Path(settings.DATA_DIR) / "networks", ending, limit)
    except TooLarge:
        raise TooBig(shown, f"it is larger than {limit / 1e9:g} GB", "upload a smaller network") from None
    except OSError as error:
        raise unwritten(error)(
            shown, f"it cannot be written ({error.strerror})", "make room on the server's disk, try again"
        ) from error
    if not stored.size:
        raise Refused(shown, "it is empty", "export the network again")
    return stored
