from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import zoo
from tests.command_line import Start, Told, starter, teller
from workers.headless.__main__ import main


@pytest.fixture(scope="session")
def command(machine_cache: Path, lock_of_its_own: None) -> Start:
    """Starts `python -m workers.headless` with these arguments."""
    return starter(["-m", "workers.headless"], machine_cache)


@pytest.fixture(scope="session")
def told(command: Start) -> Told:
    """Runs a command to its end: exit code, standard output, standard error."""
    return teller(command, 280)


@pytest.fixture
def told_here(
    machine_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[Any, str, str]]:
    """As `told`, in this process: starting another takes longer than finding out about most mistakes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine_cache))

    def run(*arguments: object) -> tuple[Any, str, str]:
        try:
            code: Any = main([*map(str, arguments)])
        except SystemExit as ended:
            code = ended.code
        return code, *capsys.readouterr()

    return run


@dataclass(frozen=True)
class Tuned:
    """A run's --out directory, its figures as it left them, and what it printed."""

    out: Path
    summary: dict[str, Any]
    profile: dict[str, Any]
    said: str


@pytest.fixture(scope="session")
def tuning(told: Told, zoo_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    """A run of the tiny network, from nothing."""
    out = tmp_path_factory.mktemp("tuned")
    code, said, errors = told("tune", zoo.tiny(zoo_cache), "--trials", 24, "--minutes", 20, "--profile", "--out", out)
    assert code == 0, errors
    assert "compiling the network untuned" in errors, "a run that may be long is compared with ONNX Runtime first"
    assert "ONNX Runtime" in said
    assert "known from earlier runs" not in errors
    summary, profile = (json.loads((out / f"{name}.json").read_text()) for name in ("summary", "profile"))
    assert 0 < summary["untuned"] < 1
    assert "TVM untuned" in said, "what it was compared with is told at the end"
    return Tuned(out, summary, profile, said)


@pytest.fixture(scope="session")
def tuned(tuning: Tuned) -> Path:
    """Its --out directory."""
    return tuning.out


@pytest.fixture
def unpacked(tuned: Path, tmp_path: Path) -> Path:
    """What its archive holds."""
    with zipfile.ZipFile(tuned / "tiny.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path
