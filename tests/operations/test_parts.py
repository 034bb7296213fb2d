import os
import signal
import subprocess
import sys
import time

import pytest

from apps.operations import parts
from apps.operations.launcher import GRACE, Launcher
from apps.operations.parts import Part, Plan
from tests.processes import alive, eventually

NAP = [sys.executable, "-c", "import time; time.sleep(600)"]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def part(tmp_path):
    made = []

    def make(argv, **options):
        found = Part(Plan("part", argv, **options), tmp_path, dict(os.environ), Clock())
        made.append(found)
        return found

    yield make
    for found in made:
        found.kill()


def ended(found):
    found._process.wait(10)


def test_what_ends_is_started_again_and_waits_twice_as_long_each_time(part):
    found = part([sys.executable, "-c", "raise SystemExit(3)"])
    waits = []
    for _ in range(8):
        found.look()
        ended(found)
        assert "status 3" in found.look()
        assert found.look() is None  # not due yet
        waits.append(found.due - found.clock.now)
        found.clock.now = found.due
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_a_long_life_is_not_held_against_a_part(part):
    found = part(NAP)
    found.failures = 5
    found.look()
    found.clock.now = 61.0
    os.kill(found.pid, signal.SIGKILL)
    ended(found)
    assert "SIGKILL" in found.look()
    assert found.failures == 1


def test_a_part_that_may_end_is_not_started_again(part):
    found = part([sys.executable, "-c", ""], once=True)
    found.look()
    ended(found)
    assert found.look() is None
    found.clock.now = 1e9
    assert found.look() is None
    assert found.pid is None


def test_what_a_part_says_is_in_its_log(part, tmp_path):
    found = part([sys.executable, "-c", "import sys; print('words'); print('more', file=sys.stderr)"])
    found.look()
    ended(found)
    assert set((tmp_path / "part.log").read_text().split()) == {"words", "more"}


def test_the_log_of_a_part_that_runs_on_begins_anew(part, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "LOG_SIZE", 1000)
    log, more = tmp_path / "part.log", tmp_path / "more"
    program = (
        "import os, time; print('x' * 2000, flush=True)\n"
        f"while not os.path.exists({str(more)!r}): time.sleep(0.01)\n"
        "print('more', flush=True); time.sleep(600)"
    )
    found = part([sys.executable, "-c", program])
    found.look()
    eventually(lambda: log.stat().st_size > 2000)
    assert found.look() is None
    assert (log.stat().st_size, (tmp_path / "part.log.1").stat().st_size) == (0, 2001)
    more.touch()
    eventually(lambda: log.read_text() == "more\n")


def test_parts_die_with_a_launcher_that_is_killed(tmp_path):
    program = (
        "import os, sys, time; from pathlib import Path; from apps.operations.parts import Part, Plan\n"
        f"part = Part(Plan('nap', {NAP!r}), Path({str(tmp_path)!r}), dict(os.environ)); part.start()\n"
        "print(part.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as launcher:
        pid = int(launcher.stdout.readline())
        assert alive(pid)
        launcher.kill()
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pid)


def test_the_stubborn_are_killed_and_the_first_end_last(part, tmp_path):
    order = tmp_path / "order"
    polite = (
        "import signal, sys, time\n"
        "def leave(*_):\n"
        f"    open({str(order)!r}, 'a').write(sys.argv[1]); sys.exit()\n"
        "signal.signal(signal.SIGTERM, leave); print('ready', flush=True); time.sleep(600)"
    )
    stubborn = "import signal as s, time; s.signal(s.SIGTERM, s.SIG_IGN); print('ready', flush=True); time.sleep(600)"
    server, web, deaf = parts = [
        Part(Plan(name, argv), tmp_path, dict(os.environ))
        for name, argv in (
            ("server", [sys.executable, "-c", polite, "s"]),
            ("web", [sys.executable, "-c", polite, "w"]),
            ("deaf", [sys.executable, "-c", stubborn]),
        )
    ]
    clock = Clock()

    def sleep(seconds):
        """The clock goes on while the deaf one alone is waited for: the others take what they need."""
        if deaf.running() and not web.running():
            clock.now += seconds
        else:
            time.sleep(0.01)

    launcher = Launcher([server], [web, deaf], lambda news: None, clock, sleep)
    launcher.tend(parts)
    pids = [found.pid for found in parts]
    for found in parts:
        eventually(lambda found=found: "ready" in found.log.read_text())
    launcher.end()
    assert GRACE <= clock.now < GRACE + 0.5
    assert not any(alive(pid) for pid in pids)
    assert order.read_text() == "ws"


def test_what_cannot_be_started_is_tried_again(part):
    def before(failures):
        if failures < 3:
            raise OSError(28, "No space left on device")

    found = part(NAP, before=before)
    waits = []
    for _ in range(3):
        assert "No space left" in found.look()
        assert found.look() is None  # not due yet
        waits.append(found.due - found.clock.now)
        found.clock.now = found.due
    assert waits == [0.5, 1, 2]
    assert found.look() is None
    assert found.running()


def test_many_failures_are_no_fault(part):
    found = part([sys.executable, "-c", "raise SystemExit(3)"])
    found.failures = 100_000
    found.look()
    ended(found)
    assert "in 30 s" in found.look()
