"""Ends a tree when whoever guards it is killed.

The parent-death signal reaches what `spawn` started, but not a compiler that such a process started by itself. The
watchdog waits for the end of a pipe that only its guardian holds open, which the kernel closes however it dies.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from workers.sandbox.spawn import ROOT, Process, scrubbed
from workers.sandbox.tree import Tree

_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from workers.sandbox.watchdog import main; main(sys.argv[2:])"


def main(arguments: Sequence[str]) -> None:
    """Waits for end of file on standard input, then ends the tree with this leader and token."""
    leader, token = arguments
    tree = Tree(int(leader), token)
    os.read(0, 1)
    tree.end(0.0)


@contextmanager
def guarded(process: Process) -> Iterator[None]:
    """While inside, and should this process be killed there, all that `process` starts is ended within a second."""
    watchdog = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, ROOT, str(process.pid), process.tree.token],
        env=scrubbed(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        # The process is ended first, so that the watchdog finds nothing and its scan is over at once.
        process.end(0.0)
        assert watchdog.stdin is not None
        watchdog.stdin.close()
        watchdog.wait()
