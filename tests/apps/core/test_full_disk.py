"""A disk without room is said as that, and something can still be deleted on it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from apps.core import full_disk


def no_room() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_reserve_is_let_go_of_for_what_deletes(data_dir: Path) -> None:
    full_disk.keep_reserve()
    (reserve,) = data_dir.iterdir()
    taken = reserve.stat()
    assert taken.st_size == full_disk.RESERVE <= 512 * taken.st_blocks

    @full_disk.with_reserve
    def delete(name: str) -> str:
        if reserve.exists():
            raise no_room()
        return name

    assert delete("it") == "it"
    full_disk.keep_reserve()
    assert reserve.exists()


def test_what_fails_without_a_reserve_or_for_another_reason_fails(data_dir: Path) -> None:
    @full_disk.with_reserve
    def delete(error: OSError) -> None:
        raise error

    with pytest.raises(OSError, match="No space left"):
        delete(no_room())
    full_disk.keep_reserve()
    with pytest.raises(PermissionError):
        delete(PermissionError(errno.EPERM, "not yours"))
    assert list(data_dir.iterdir())
    with pytest.raises(OSError, match="No space left"):
        delete(no_room())


def test_no_reserve_is_kept_of_the_last_room(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = os.statvfs(data_dir).f_bavail * os.statvfs(data_dir).f_frsize
    monkeypatch.setattr(full_disk, "RESERVE", free // 3)
    full_disk.keep_reserve()
    assert not list(data_dir.iterdir())
