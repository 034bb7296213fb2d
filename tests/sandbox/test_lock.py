"""The lock is between processes, so every holder here is one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import comes_true
from workers.sandbox.lock import MeasureLock, default_path

ROOT = Path(__file__).resolve().parents[2]

HOLDER = """
import sys
from workers.sandbox.lock import MeasureLock
lock = getattr(MeasureLock(sys.argv[1]), sys.argv[2])
print("asks", flush=True)
with lock() as waited:
    print(waited, flush=True)
    sys.stdin.readline()
"""
# Some of these overlap so that the lock is never free of readers; {gate} lets a test take the turnstile away.
READER = """
import sys, time
from pathlib import Path
from workers.sandbox.lock import MeasureLock
lock = MeasureLock(sys.argv[1])
if sys.argv[2] == "no-gate": lock._gate = Path(sys.argv[1] + ".reader" + sys.argv[3])
time.sleep(float(sys.argv[3]))
print(flush=True)
while True:
    with lock.shared():
        time.sleep(0.1)
"""


class Holders:
    """Processes that ask for the lock, once `start` returns, and keep it until told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", program, str(self.path), *arguments],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline(), "it asks: what a process takes to start is no waiting"
        os.set_blocking(process.stdout.fileno(), False)
        return process

    @staticmethod
    def has(process: subprocess.Popen[bytes]) -> bool:
        assert process.stdout is not None
        return bool(process.stdout.read())

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def holders(tmp_path: Path) -> Iterator[Holders]:
    holders = Holders(tmp_path / "run" / "measure.lock")
    yield holders
    holders.close()


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("shared", "shared", True),
        ("shared", "exclusive", False),
        ("exclusive", "shared", False),
        ("exclusive", "exclusive", False),
    ],
)
def test_who_may_hold_it_together(first: str, second: str, together: bool, holders: Holders) -> None:
    one = holders.start(HOLDER, first)
    assert comes_true(lambda: holders.has(one), 10)
    two = holders.start(HOLDER, second)
    assert comes_true(lambda: holders.has(two), 10 if together else 0.3) is together
    if not together:
        one.communicate(b"done\n")
        assert comes_true(lambda: holders.has(two), 10)


@pytest.mark.parametrize("kind", ["shared", "exclusive"])
def test_a_killed_holder_lets_go(kind: str, holders: Holders) -> None:
    one = holders.start(HOLDER, kind)
    assert comes_true(lambda: holders.has(one), 10)
    two = holders.start(HOLDER, "exclusive")
    assert not comes_true(lambda: holders.has(two), 0.2)
    one.kill()
    assert comes_true(lambda: holders.has(two), 10)


def writer_gets_in(gate: str, holders: Holders, seconds: float) -> bool:
    for offset in ("0", "0.03", "0.06", "0.09"):
        holders.start(READER, gate, offset)
    writer = holders.start(HOLDER, "exclusive")
    return comes_true(lambda: holders.has(writer), seconds)


def test_a_writer_is_not_starved_by_readers_that_overlap(holders: Holders) -> None:
    assert writer_gets_in("gate", holders, 10)


@pytest.mark.mutation
def test_without_the_turnstile_the_writer_starves(holders: Holders) -> None:
    assert not writer_gets_in("no-gate", holders, 1.5)


def test_the_time_waited_is_told(tmp_path: Path) -> None:
    times = iter([10.0, 12.5])
    with MeasureLock(tmp_path / "own" / "lock", clock=lambda: next(times)).exclusive() as waited:
        assert waited == 2.5


def test_a_second_hold_by_the_same_process_is_an_error_and_not_a_deadlock(tmp_path: Path) -> None:
    lock = MeasureLock(tmp_path / "lock")
    with lock.shared(), pytest.raises(RuntimeError, match="already held"), lock.exclusive():
        pass
    with lock.exclusive():
        pass


def test_a_lock_file_that_a_cleaner_removed_is_made_anew(holders: Holders) -> None:
    one = holders.start(HOLDER, "exclusive")
    assert comes_true(lambda: holders.has(one), 10)
    two = holders.start(HOLDER, "exclusive")
    assert not comes_true(lambda: holders.has(two), 0.2)
    holders.path.unlink()
    one.communicate(b"done\n")
    assert comes_true(lambda: holders.has(two), 10)
    three = holders.start(HOLDER, "exclusive")
    assert not comes_true(lambda: holders.has(three), 0.3)


def test_a_directory_open_to_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError, match="not ours alone"):
        MeasureLock(tmp_path / "open" / "measure.lock")


def test_the_place_does_not_depend_on_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUNINGSITE_MEASURE_LOCK", raising=False)
    usual = default_path()
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    assert default_path() == usual
    monkeypatch.setenv("TUNINGSITE_MEASURE_LOCK", "/named/measure.lock")
    assert default_path() == Path("/named/measure.lock")


def test_its_files_are_there_for_who_may_make_none_and_look_used(tmp_path: Path) -> None:
    lock = MeasureLock(tmp_path / "own" / "lock")
    for _ in range(2):
        files = lock.files()
        assert sorted(files) == sorted(map(str, (tmp_path / "own").iterdir()))
        assert all(os.stat(file).st_mtime > 0 for file in files), "else a cleaner of temporary files takes them"
        for file in files:
            os.utime(file, (0, 0))
