"""Arrays as .npz files."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.messages.whole import whole

UNREADABLE = (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, OverflowError, RuntimeError, MemoryError)
"""What zipfile and numpy raise for a file that somebody else may have written."""
WIDEST, HEADERS = 16, 4096
"""Bytes of the widest number, and of what a file holds of an array beside its numbers and, twice, its name."""


def save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes the file whole or not at all. numpy's savez takes no array of the name "file", which a network's input may have.

    Names come from the network: as file names inside the archive they are never extracted.
    """
    with whole(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def room(arrays: Mapping[str, NDArray[Any]]) -> int:
    """Bytes that a file of arrays of these names and shapes takes at most, whatever their numbers are."""
    return sum(WIDEST * array.size + 2 * len(name.encode()) + HEADERS for name, array in arrays.items())


def check_within(path: Path, most: int) -> None:
    """Raises ValueError for a file of which more than `most` bytes might be read: what is compressed may take any number of
    them. Raises one of UNREADABLE for what is no archive."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError(f"{path.name} is compressed")
    if (size := sum(member.file_size for member in members)) > most:
        raise ValueError(f"{path.name} holds {size} bytes where {most} have room")


def save_reference(path: Path, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    """Writes both whole or not at all."""
    arrays = {f"in:{name}": a for name, a in inputs.items()} | {f"out:{name}": a for name, a in outputs.items()}
    save(path, arrays)


def load_reference(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs of `save_reference`."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    inputs = {name[3:]: array for name, array in arrays.items() if name.startswith("in:")}
    return inputs, {name[4:]: array for name, array in arrays.items() if name.startswith("out:")}
