from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

Told = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def zoo_cache() -> Path:
    """Where test networks are kept between runs; ZOO_CACHE names another place."""
    return Path(os.environ.get("ZOO_CACHE", Path(tempfile.gettempdir()) / f"network-zoo-{os.getuid()}"))


@pytest.fixture(scope="session")
def machine_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache that knows this machine already, and a measuring lock that no other run waits for."""
    from workers.headless.ask import ask

    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNINGSITE_MEASURE_LOCK", str(cache / "lock" / "measure.lock"))
        found = ask({"task": "hardware", "peak": False})
        kept = {**{name: found[name] for name in ("hardware", "versions")}, "peak": {"flops": 1e11, "bandwidth": 1e10}}
        (cache / "tuningsite").mkdir()
        (cache / "tuningsite" / "machine.json").write_text(json.dumps(kept))
        yield cache


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
