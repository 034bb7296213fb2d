"""Arrays as .npz files."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.messages.whole import whole


def save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes the file whole or not at all. numpy's savez takes no array of the name "file", which a network's input may have.

    Names come from the network: as file names inside the archive they are never extracted.
    """
    with whole(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


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
