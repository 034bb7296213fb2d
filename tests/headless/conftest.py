from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import zoo

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def zoo_cache() -> Path:
    """Where test networks are kept between runs; ZOO_CACHE names another place."""
    return Path(os.environ.get("ZOO_CACHE", Path(tempfile.gettempdir()) / f"network-zoo-{os.getuid()}"))


@pytest.fixture(scope="session")
def lock_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """These runs neither wait for other runs on this machine nor make them wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNINGSITE_MEASURE_LOCK", str(tmp_path_factory.mktemp("lock") / "measure.lock"))
        yield


@pytest.fixture(scope="session")
def machine_cache(lock_of_its_own: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that knows this machine already: measuring its peak takes a quarter of a minute."""
    from workers.headless.ask import ask

    cache = tmp_path_factory.mktemp("cache")
    found = ask({"task": "hardware", "peak": False})
    kept = {**{name: found[name] for name in ("hardware", "versions")}, "peak": {"flops": 1e11, "bandwidth": 1e10}}
    (cache / "tuningsite").mkdir()
    (cache / "tuningsite" / "machine.json").write_text(json.dumps(kept))
    return cache


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
