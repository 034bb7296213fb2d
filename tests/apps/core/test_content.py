"""A file is written once, whoever sends it again; who may read it goes on reading it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.core import clock, content
from workers.sandbox import landlock, spawn

CONTENT = b"same"
OPENS = """
import sys
print("confined", flush=True)
sys.stdin.readline()
try:
    print(open(sys.argv[1]).read())
except OSError as error:
    print(type(error).__name__)
"""


def kept(folder: Path) -> Path:
    return folder / f"{content.keep([CONTENT], folder, '.onnx').sha256}.onnx"


def opened_after_it_came_again(folder: Path) -> str:
    """What a child gets that may read this one file, when its content came again since the child was started."""
    path = kept(folder)
    argv, access = [sys.executable, "-c", OPENS, str(path)], spawn.Access(read=(str(path),))
    with spawn.spawn(argv, access=access, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"confined\n"
        assert kept(folder) == path
        child.stdin.write(b"\n")
        return str(child.stdout.read().decode().strip())


needs_landlock = pytest.mark.skipif(not landlock.supported(), reason="this kernel offers no Landlock")


@needs_landlock
def test_a_child_that_is_confined_to_a_file_opens_it_when_it_came_again(tmp_path: Path) -> None:
    assert opened_after_it_came_again(tmp_path) == CONTENT.decode()


@needs_landlock
@pytest.mark.mutation
def test_another_file_in_its_place_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_named", os.replace)
    assert opened_after_it_came_again(tmp_path) == "PermissionError"


def _without(*names: Any) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_what_comes_again_is_the_same_file_and_young_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Also where the file system has no links."""
    if not links:
        monkeypatch.setattr(os, "link", _without)
    folder = tmp_path / "files"
    path = kept(folder)
    number = path.stat().st_ino
    os.utime(path, (0, 0))
    assert kept(folder) == path
    assert path.stat().st_ino == number
    assert abs(path.stat().st_mtime - clock.now().timestamp()) < 60
    assert list(folder.iterdir()) == [path]
    assert path.read_bytes() == CONTENT
