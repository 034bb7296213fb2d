import os
from pathlib import Path

import pytest

from workers.sandbox import files
from workers.sandbox.files import LEAST, kept

MUCH = 1 << 40


def blocks(path: Path) -> int:
    return max(LEAST, 512 * path.lstat().st_blocks)


def test_what_lies_beneath_counts_once(tmp_path: Path) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    one, two = tmp_path / "one", tmp_path / "deep/er/two"
    one.write_bytes(b"x" * 1_000_000)
    two.write_bytes(b"x" * 300_000)
    os.link(one, tmp_path / "deep/again")
    names = [one, two, tmp_path / "deep", tmp_path / "deep/er"]
    assert kept([str(tmp_path)], [], MUCH) == sum(map(blocks, names))


def test_links_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "large").write_bytes(b"x" * 1_000_000)
    (tmp_path / "in/link").symlink_to(tmp_path)
    assert kept([str(tmp_path / "in")], [], MUCH) == LEAST


def test_files_of_nothing_count_too_and_looking_ends_when_it_is_enough(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert kept([str(tmp_path)], [], MUCH) == 100 * LEAST
    assert kept([str(tmp_path)], [], 10 * LEAST) == 11 * LEAST


def test_room_that_a_sparse_file_does_not_take_is_not_counted(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 30)
    assert kept([str(tmp_path)], [], MUCH) == LEAST


def removed(folder: Path) -> int:
    """Counted while a file of a megabyte is open and has no name."""
    with open(folder / "file", "wb") as file:
        file.write(b"x" * 1_000_000)
        file.flush()
        os.fsync(file.fileno())
        (folder / "file").unlink()
        return kept([str(folder)], [os.getpid()], MUCH)


def test_a_removed_file_counts_while_it_is_open(tmp_path: Path) -> None:
    assert removed(tmp_path) >= 1_000_000


@pytest.mark.mutation
def test_without_a_look_at_descriptors_the_removed_file_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_nameless", lambda pids: iter(()))
    assert removed(tmp_path) == 0


def test_what_is_gone_is_nothing(tmp_path: Path) -> None:
    assert kept([str(tmp_path / "nowhere")], [2**22 + 1], MUCH) == 0
