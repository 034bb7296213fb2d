"""What is taken from a child's directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apps.tuning.files import keep_archive


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.zip").write_bytes(b"secret")
    return folder


def test_a_plain_file_is_copied(work: Path, tmp_path: Path) -> None:
    (work / "artifact.zip").write_bytes(b"library")
    stored = keep_archive(str(work / "artifact.zip"), work, tmp_path / "kept")
    assert (tmp_path / "kept" / f"{stored.sha256}.zip").read_bytes() == b"library"


@pytest.mark.parametrize(
    "name", ["link.zip", "fifo.zip", "folder.zip", "inner/artifact.zip", "../secret.zip", "..", "no"]
)
def test_everything_else_is_refused(work: Path, tmp_path: Path, name: str) -> None:
    (work / "link.zip").symlink_to(tmp_path / "secret.zip")
    (work / "folder.zip").mkdir()
    (work / "inner").symlink_to(tmp_path)
    (tmp_path / "artifact.zip").write_bytes(b"secret")
    os.mkfifo(work / "fifo.zip")
    with pytest.raises(ValueError, match="own directory"):
        keep_archive(str(work / name), work, tmp_path / "kept")
    assert not list(tmp_path.glob("kept/*"))


def test_a_large_one_is_refused_and_leaves_nothing(work: Path, tmp_path: Path) -> None:
    (work / "artifact.zip").write_bytes(b"library")
    with pytest.raises(ValueError, match="more than 6 bytes"):
        keep_archive(str(work / "artifact.zip"), work, tmp_path / "kept", 6)
    assert not list(tmp_path.glob("kept/*"))
