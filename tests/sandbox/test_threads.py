"""The kernel's bound on processes counts threads of a user, and so do we."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.sandbox import threads

ROOT = Path(__file__).resolve().parents[2]

# Root is not counted: as somebody else.
STORM = """
import json, os, resource, signal, threading, time
from workers.sandbox.threads import of_user
if not os.getuid(): os.setresuid(65533, 65533, 65533)
before = of_user()
for _ in range(5): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
counted = None if before is None else of_user() - before
started = []
if before is not None:
    resource.setrlimit(resource.RLIMIT_NPROC, (of_user() + 20,) * 2)
    try:
        while len(started) < 500:
            pid = os.fork()
            if not pid:
                time.sleep(5)
                os._exit(0)
            started.append(pid)
    except BlockingIOError:
        pass
for pid in started: os.kill(pid, signal.SIGKILL)
print(json.dumps([counted, len(started)]), flush=True)
os._exit(0)
"""


def test_threads_are_counted_and_a_bound_beyond_them_holds() -> None:
    ran = subprocess.run([sys.executable, "-c", STORM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    counted, started = json.loads(ran.stdout)
    if counted is None:
        pytest.skip("in a container: whom the kernel counts is not to be seen")
    if os.getuid():
        # The user may be doing something else meanwhile.
        assert counted >= 1
        assert started <= 200
    else:
        assert (counted, started) == (5, 20)


@pytest.mark.skipif(os.getuid() != 0, reason="this is not root")
def test_root_has_no_bound() -> None:
    assert threads.of_user() is None
