"""Commands as a user starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

Start = Callable[..., "subprocess.Popen[str]"]
Told = Callable[..., tuple[int, str, str]]


def starter(words: Sequence[str], cache: Path) -> Start:
    """Starts Python with `words` and the arguments that are given; measured machines are in `cache`."""

    def start(*arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *words, *map(str, arguments)], env={**os.environ, "XDG_CACHE_HOME": str(cache)},
            cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


def teller(start: Start, seconds: float) -> Told:
    """Runs a command to its end, of at most `seconds`: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with start(*arguments) as process:
            out, errors = process.communicate(timeout=seconds)
        return process.returncode, out, errors

    return run
