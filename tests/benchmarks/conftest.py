from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

Told = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def started(machine_cache: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts `manage.py benchmark` with these arguments."""

    def start(*arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", "benchmark", *map(str, arguments)],
            env={**os.environ, "XDG_CACHE_HOME": str(machine_cache)},
            cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


@pytest.fixture(scope="session")
def told(started: Callable[..., subprocess.Popen[str]]) -> Told:
    """Runs a benchmark to its end: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with started(*arguments) as process:
            out, errors = process.communicate(timeout=600)
        return process.returncode, out, errors

    return run
