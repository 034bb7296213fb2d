"""How large a file of arrays may be."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from workers.baselines.arrays import HEADERS, UNREADABLE, check_within, room, save


@pytest.mark.parametrize("kind", ["int8", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (1,) * 32, (1000, 7)])
def test_a_file_of_any_numbers_has_room(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    wanted = {name: np.zeros(shape, np.float32) for name in ("y", "ü" * 1000, "file")}
    save(path := tmp_path / "outputs.npz", {name: array.astype(kind) for name, array in wanted.items()})
    assert path.stat().st_size <= room(wanted)
    check_within(path, room(wanted))


def test_what_takes_more_once_it_is_read_is_none(tmp_path: Path) -> None:
    wanted = {"y": np.zeros(1000, np.float32)}
    most, path = room(wanted), tmp_path / "outputs.npz"
    save(path, {"y": np.zeros(most, np.int8)})
    with pytest.raises(ValueError, match=rf"outputs\.npz holds \d+ bytes where {most} have room"):
        check_within(path, most)
    np.savez_compressed(path, y=np.zeros(1000 * most, np.int8))
    assert path.stat().st_size < 2 * most
    with pytest.raises(ValueError, match=r"outputs\.npz is compressed"):
        check_within(path, most)


def test_members_that_share_their_bytes_count_each(tmp_path: Path) -> None:
    path = tmp_path / "outputs.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("y.npy", bytes(HEADERS))
        archive.filelist *= 100
    with pytest.raises(ValueError, match=f"holds {100 * HEADERS} bytes"):
        check_within(path, 50 * HEADERS)


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_what_is_no_archive_is_said(tmp_path: Path, content: bytes) -> None:
    (path := tmp_path / "outputs.npz").write_bytes(content)
    with pytest.raises(UNREADABLE, match="not a zip file"):
        check_within(path, 1000)
