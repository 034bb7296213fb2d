"""Is this .pt2 file what torch.export.save writes, and nothing more? Looked at with the standard library alone.

torch.export.load runs code that a file brings. What such code can stand in is refused here and in torch_program; what the
check cannot know is left to the sandbox: never load a file outside of it.

The archive, as torch 2.13 writes it: one folder, members stored and not compressed; raw bytes of tensors in
data/weights/weight_N and data/constants/tensor_N, their shapes in JSON beside them, the graph in models/model.json, and
pickled example inputs, which nobody needs here and which are therefore never loaded.
"""

from __future__ import annotations

import mmap
import re
import shutil
import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path

from workers.networks.errors import NetworkError
from workers.networks.torch_program import AGAIN, WHOLE, check_graph, check_sample, check_tensors
from workers.networks.upload import check_file

EXTENSION = ".pt2"


@dataclass(frozen=True)
class ArchiveLimits:
    """`file_bytes` of the archive, which bounds all members together because none is compressed; `graph_bytes` of one
    JSON member, `sample_bytes` of the example inputs, `elements` of one tensor."""

    file_bytes: int = 2_000_000_000
    members: int = 20_000
    graph_bytes: int = 64 * 2**20
    sample_bytes: int = 64 * 2**20
    label_bytes: int = 1_024
    elements: int = 2**30


DEFAULT = ArchiveLimits()

_GRAPH = "models/model.json"
_WEIGHTS, _CONSTANTS = "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"
_SAMPLE = "data/sample_inputs/model.pt"
_REQUIRED = (_GRAPH, _WEIGHTS, _CONSTANTS, "archive_format", "archive_version")
_TENSOR = re.compile(r"data/(weights/weight|constants/tensor)_\d+")
_LABELS = frozenset({"archive_format", "archive_version", "byteorder", ".data/version", ".data/serialization_id"})
_EXTRA = "extra/"
_PICKLED = re.compile(r".*\.(pkl|pt|pth|pickle)|data/constants/(custom|opaque)_obj_.*")
_COMPILED = "data/aotinductor/"


def rewrite(source: Path, target: Path, limits: ArchiveLimits = DEFAULT) -> None:
    """Checks the archive and writes what was checked, and only that, to `target`.

    A copy, because two readers of one zip may see different members; example inputs and extra files are left out.
    Raises NetworkError naming the member at fault.
    """
    _check_file(source, limits)
    try:
        with zipfile.ZipFile(source) as archive:
            members = _members(archive, source.stat().st_size, limits)
            _check_contents(archive, members, limits)
            _copy(archive, members, target)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, OverflowError) as error:
        raise NetworkError(source.name, f"the archive is damaged ({error})", WHOLE) from error


def _check_file(path: Path, limits: ArchiveLimits) -> None:
    check_file(path, EXTENSION, limits.file_bytes)
    if not zipfile.is_zipfile(path):
        raise NetworkError(
            path.name,
            "this is not a zip archive, or its end is missing, so torch.export.save did not write it like this",
            f"{WHOLE}; an ONNX file must be named .onnx",
        )
    # Counted before zipfile makes an object of each; weights may hold the mark by chance, but not thousands of times.
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = at = 0
        while found <= limits.members and (at := content.find(b"PK\x01\x02", at) + 1):
            found += 1
    if found > limits.members:
        raise NetworkError(path.name, f"it has more than {limits.members} members", AGAIN)


def _members(archive: zipfile.ZipFile, room: int, limits: ArchiveLimits) -> dict[str, zipfile.ZipInfo]:
    """The members by their name below the archive's one folder, together no larger than `room`, the archive's bytes."""
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        name = _name(entry)
        _check_entry(entry, name, limits)
        room -= entry.file_size
        if name in members:
            raise NetworkError(entry.orig_filename, "this member is there twice", AGAIN)
        if room < 0:
            raise NetworkError(
                entry.orig_filename, "the members up to this one are larger than the archive: they share bytes", AGAIN
            )
        members[name] = entry
    folders = {entry.filename.partition("/")[0] for entry in members.values()}
    if len(folders) != 1:
        raise NetworkError(len(folders), "so many folders on top of the archive; one is expected", AGAIN)
    for name in _REQUIRED:
        if name not in members:
            raise NetworkError(name, "this member is missing: torch.export.save did not write this archive", AGAIN)
    return members


def _name(entry: zipfile.ZipInfo) -> str:
    written = entry.orig_filename
    parts = written.split("/")
    if written.startswith("/") or "\\" in written or ":" in parts[0] or ".." in parts:
        raise NetworkError(written, "this member's name leads out of the archive", AGAIN)
    if len(parts) < 2 or "" in parts or "." in parts or not written.isprintable() or written != entry.filename:
        raise NetworkError(written, "torch.export.save writes no member of such a name", AGAIN)
    return written.partition("/")[2]


def _check_entry(entry: zipfile.ZipInfo, name: str, limits: ArchiveLimits) -> None:
    shown = entry.orig_filename
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise NetworkError(shown, "this member is a link, a folder or a device", AGAIN)
    if entry.flag_bits & 1:
        raise NetworkError(shown, "this member is encrypted", AGAIN)
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise NetworkError(
            shown,
            f"this member is compressed, {entry.compress_size} bytes that become {entry.file_size}; "
            "torch.export.save compresses nothing",
            AGAIN,
        )
    if entry.file_size > _allowed(name, shown, limits):
        raise NetworkError(
            shown, f"this member has {entry.file_size} bytes, {_allowed(name, shown, limits)} are allowed", AGAIN
        )


def _allowed(name: str, shown: str, limits: ArchiveLimits) -> int:
    """Bytes a member of this name may have; raises NetworkError where there must be none."""
    if _TENSOR.fullmatch(name) or name.startswith(_EXTRA):
        return limits.file_bytes
    if name in (_GRAPH, _WEIGHTS, _CONSTANTS):
        return limits.graph_bytes
    if name == _SAMPLE:
        return limits.sample_bytes
    if name in _LABELS:
        return limits.label_bytes
    if name.startswith(_COMPILED):
        raise NetworkError(shown, "this member is compiled code, which nobody can check", AGAIN)
    if _PICKLED.fullmatch(name):
        raise NetworkError(shown, "this member holds pickled objects, which run code when they are loaded", AGAIN)
    raise NetworkError(shown, "torch.export.save writes no such member for a single network", AGAIN)


def _check_contents(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], limits: ArchiveLimits) -> None:
    if archive.read(members["archive_format"]) != b"pt2":
        raise NetworkError(members["archive_format"].filename, "this says another format than pt2", AGAIN)
    if "byteorder" in members and archive.read(members["byteorder"]) != b"little":
        raise NetworkError(members["byteorder"].filename, "only little-endian tensors are read", AGAIN)
    sizes = {name: entry.file_size for name, entry in members.items()}
    for listing in (_WEIGHTS, _CONSTANTS):
        check_tensors(listing, archive.read(members[listing]), sizes, limits.elements)
    check_graph(_GRAPH, archive.read(members[_GRAPH]), limits.elements)
    if _SAMPLE in members:
        check_sample(_SAMPLE, archive.read(members[_SAMPLE]))


def _copy(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for name, entry in members.items():
            if name != _SAMPLE and not name.startswith(_EXTRA):
                with archive.open(entry) as content, copy.open(f"network/{name}", "w", force_zip64=True) as sink:
                    shutil.copyfileobj(content, sink, 1 << 20)
        copy.writestr(f"network/{_SAMPLE}", b"")
