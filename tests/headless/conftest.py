from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import zoo

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command(machine_cache: Path, lock_of_its_own: None) -> Callable[..., subprocess.Popen[str]]:
    """Starts `python -m workers.headless` with these arguments."""

    def start(*arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "workers.headless", *map(str, arguments)],
            env={**os.environ, "XDG_CACHE_HOME": str(machine_cache)},
            cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


@pytest.fixture(scope="session")
def told(command: Callable[..., subprocess.Popen[str]]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command to its end: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with command(*arguments) as process:
            out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors

    return run


@pytest.fixture(scope="session")
def tuned(told: Callable[..., tuple[int, str, str]], zoo_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The --out directory of a run of the tiny network, from nothing."""
    out = tmp_path_factory.mktemp("tuned")
    code, said, errors = told("tune", zoo.tiny(zoo_cache), "--trials", 40, "--out", out)
    assert code == 0, errors
    assert "ONNX Runtime" in said
    assert "known from earlier runs" not in errors
    return out
