"""What an import leaves behind goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

KEPT = """
import os, sys
from pathlib import Path
from workers.child.heap import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

before = resident()
blocks = [b"x" * (64 << 10) for _ in range(2000)]
del blocks[:-1]  # the last one is on top of all the others
held = resident() - before
if sys.argv[1] == "trimmed":
    give_back()
print(held, resident() - before)
"""


def left(how: str) -> float:
    """Of 125 MiB, a mebibyte at the far end apart, what a process still has after it freed them; bytes."""
    said = subprocess.run([sys.executable, "-c", KEPT, how], check=True, capture_output=True, text=True, timeout=60)
    held, after = (int(number) for number in said.stdout.split())
    if held < 100 << 20:
        pytest.skip("this allocator keeps nothing")
    return after


def test_memory_between_blocks_in_use_is_given_back() -> None:
    assert left("as it is") > 100 << 20
    assert left("trimmed") < 10 << 20
