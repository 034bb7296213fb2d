import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.sandbox import files
from workers.sandbox.files import LEAST, kept

ROOT = Path(__file__).resolve().parents[2]
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


def test_room_that_a_file_has_beyond_its_end_is_counted(tmp_path: Path) -> None:
    """A filter on system calls refuses it (`test_seccomp`); not every kernel has one."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(tmp_path / "file", "wb") as file:
        if libc.fallocate(file.fileno(), 1, ctypes.c_long(0), ctypes.c_long(1 << 20)):  # FALLOC_FL_KEEP_SIZE
            pytest.skip(f"fallocate: {os.strerror(ctypes.get_errno())}")
        assert os.fstat(file.fileno()).st_size == 0
    assert kept([str(tmp_path)], [], MUCH) >= 1 << 20


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


APART = """
import ctypes, os, sys, threading, time
def hold():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    file = open(sys.argv[1], "wb", buffering=0)
    os.unlink(sys.argv[1])
    file.write(b"x" * 1_000_000)
    os.fsync(file.fileno())
    print(flush=True)
    time.sleep(600)
threading.Thread(target=hold).start()
"""


def test_a_thread_with_a_table_of_its_own_hides_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", APART, str(tmp_path / "file")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            assert kept([str(tmp_path)], [child.pid], MUCH) >= 1_000_000
        finally:
            child.kill()


# Root may look everywhere: as somebody else, who may look at himself again.
AS_USER = """
import ctypes, os, sys, time
from workers.sandbox.files import kept
from workers.sandbox.tree import Tree
os.chdir(sys.argv[1])
if not os.getuid():
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
"""


def seen(folder: Path, program: str) -> list[str]:
    folder.chmod(0o777)
    argv = [sys.executable, "-c", AS_USER + program, str(folder)]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_a_directory_that_is_closed_to_us_is_too_much(tmp_path: Path) -> None:
    program = "for mode in (0o700, 0): os.mkdir(f'a{mode}', mode); print(kept(['.'], [], 1 << 40))"
    open_, closed = map(int, seen(tmp_path, program))
    assert open_ == LEAST
    assert closed > MUCH


def test_a_process_that_is_closed_to_us_is_too_much_and_one_that_ended_is_nothing(tmp_path: Path) -> None:
    program = """
reading, writing = os.pipe()
closed = os.fork()
if not closed:
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    os.write(writing, b"x")
    time.sleep(600)
os.read(reading, 1)
ended = os.fork()
if not ended: os._exit(0)
os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
print(kept([], [closed], 1 << 40), kept([], [ended], 1 << 40))
os.kill(closed, 9)
"""
    closed, ended = map(int, seen(tmp_path, program))
    assert closed > MUCH
    assert ended == 0
