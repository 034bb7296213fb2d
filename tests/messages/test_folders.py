"""Whatever a child left in its directory goes with it, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.folders import deep
from workers.messages.folders import _SCANS, passing_folder, remove_tree

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("depth", "name"),
    [(1500, "d"), (40, "n" * 255)],
    ids=["more folders than the stack holds", "a path that is too long"],
)
def test_a_deep_tree_goes(tmp_path: Path, depth: int, name: str) -> None:
    deep(tmp_path / "tree", depth, name)
    assert remove_tree(tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


def test_a_tree_that_is_wide_above_and_below_what_is_kept_half_read_goes(tmp_path: Path) -> None:
    for top in ("first", "second"):
        deep(tmp_path / "tree" / top, 0)
        for depth in (_SCANS - 2, _SCANS - 1, _SCANS, 2 * _SCANS):
            deep(tmp_path / "tree" / top / str(depth), depth)
    assert remove_tree(tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


AS_USER = """
import os, sys
from tests.folders import deep
from workers.messages.folders import remove_tree
os.chdir(sys.argv[1])
if not os.getuid(): os.setresuid(65534, 65534, 65534)
os.makedirs("tree/a/b/c")
for path in ("tree/a/b/c", "tree/a/b", "tree/a", "tree"): os.chmod(path, 0)
print(remove_tree("tree"), os.listdir())
"""


def test_folders_that_nobody_may_look_into_go(tmp_path: Path) -> None:
    """Root may look everywhere: as somebody else."""
    tmp_path.chmod(0o777)
    argv = [sys.executable, "-c", AS_USER, str(tmp_path)]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "True []\n"


def test_links_go_and_what_they_name_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    inside = tmp_path / "tree" / "inside"
    inside.mkdir(parents=True)
    for name in ("folder", "file"):
        (inside / name).symlink_to(kept if name == "folder" else kept / "file")
    os.mkfifo(inside / "pipe")
    (tmp_path / "link").symlink_to(kept)
    assert remove_tree(tmp_path / "tree")
    assert remove_tree(tmp_path / "link")
    assert list(tmp_path.iterdir()) == [kept]
    assert (kept / "file").read_text() == "kept"


def test_what_is_gone_already_is_gone(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "nothing")
    assert remove_tree(tmp_path / "nothing" / "beneath")


def test_a_folder_for_passing_files_goes_whatever_is_left_in_it(tmp_path: Path) -> None:
    with passing_folder("passing-", tmp_path) as path:
        assert Path(path).parent == tmp_path
        deep(Path(path), 1500)
    assert list(tmp_path.iterdir()) == []
