"""A launcher of its own process, since it takes in every orphan beneath it."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from apps.operations.orphans import Orphans
from tests.processes import alive, eventually

ENDS = 30
"""s until what is told to end has ended, and what it left behind."""
ROOT = Path(__file__).resolve().parents[2]

HIDE = """
import os, sys, time
if not os.fork():
    if not os.fork():
        os.setsid()
        os.write(1, b"hidden %d\\n" % os.getpid())
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
    os.execvp("sleep", ["sleep", "600"])
time.sleep(600)
"""
LAUNCHER = f"""
import os, sys; from pathlib import Path
from apps.operations.launcher import Launcher; from apps.operations.parts import Part, Plan
part = Part(Plan("part", [sys.executable, "-c", {HIDE!r}], once=True), Path(sys.argv[1]), dict(os.environ))
launcher = Launcher([], [part], lambda news: None, adopts=sys.argv[2] == "True")
launcher.catch_signals()
part.start()
print(part.pid, flush=True)
launcher.run()
launcher.end()
"""


class Running:
    def __init__(self, folder, adopts):
        argv = [sys.executable, "-c", LAUNCHER, str(folder), str(adopts)]
        self.process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
        self.part = int(self.process.stdout.readline())
        log = folder / "part.log"
        eventually(lambda: log.exists() and "hidden" in log.read_text(), ENDS)
        self.hidden = int(log.read_text().split()[1])

    def close(self):
        for pid in (self.part, self.hidden):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def launched(tmp_path):
    made = []

    def make(adopts=True):
        made.append(Running(tmp_path, adopts))
        return made[-1]

    yield make
    for found in made:
        found.close()


def test_what_a_killed_part_left_behind_is_ended(launched):
    found = launched()
    os.kill(found.part, signal.SIGKILL)
    eventually(lambda: not alive(found.hidden), ENDS)
    assert found.process.poll() is None


def test_a_launcher_that_ends_leaves_nothing_that_hid(launched):
    found = launched()
    found.process.send_signal(signal.SIGINT)
    assert found.process.wait(ENDS) == 0
    assert not alive(found.hidden)


def test_what_a_script_had_started_before_it_became_the_launcher_is_let_be(tmp_path):
    """A tunnel to a device, say."""
    script = 'sleep 600 & echo $!; exec "$0" "$@"'
    argv = ["sh", "-c", script, sys.executable, "-c", LAUNCHER, str(tmp_path), "True"]
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
    tunnel, part = int(process.stdout.readline()), int(process.stdout.readline())
    try:
        log = tmp_path / "part.log"
        eventually(lambda: log.exists() and "hidden" in log.read_text(), ENDS)
        hidden = int(log.read_text().split()[1])
        os.kill(part, signal.SIGKILL)
        eventually(lambda: not alive(hidden), ENDS)
        assert alive(tunnel)
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS) == 0
        assert alive(tunnel)
    finally:
        os.kill(tunnel, signal.SIGKILL)
        process.kill()
        process.communicate()


@pytest.mark.mutation
def test_a_launcher_that_takes_in_nobody_is_noticed(launched):
    found = launched(adopts=False)
    found.process.send_signal(signal.SIGINT)
    assert found.process.wait(ENDS) == 0
    assert alive(found.hidden)


def test_children_of_its_own_and_those_that_just_came_are_let_be():
    ours, other = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
    now = [0.0]
    try:
        strangers = {
            int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()
        }
        orphans = Orphans(lambda: strangers - {other.pid}, lambda: now[0])
        orphans.look()
        now[0] = 1.5
        orphans.look()
        assert alive(other.pid)
        now[0] = 3.0
        orphans.look()
        eventually(lambda: not alive(other.pid), 5)
        assert alive(ours.pid)
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


def test_a_terminal_that_is_closed_ends_everything_but_under_nohup():
    asked = "from apps.operations.launcher import Launcher; one = Launcher([], [], print); one.catch_signals(); "
    says = "signal.raise_signal(signal.SIGHUP); print(one.ending)"
    for before, ending in (("SIG_DFL", "True"), ("SIG_IGN", "False")):
        program = f"import signal; signal.signal(signal.SIGHUP, signal.{before}); {asked}{says}"
        told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert told.stdout.strip() == ending, told.stderr
