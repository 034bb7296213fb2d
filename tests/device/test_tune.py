"""`manage.py tune --device`: from a file to an archive that was verified on the device, and on again after a break."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import zoo
from tests.device.running import Running, device
from workers.sandbox.spawn import ROOT

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with device(tmp_path_factory.mktemp("device")) as one:
        yield one


def tuned(running: Running, network: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    given = ["--device", str(running.address), "--device-key", str(running.folder / "key"), "--out", str(out)]
    argv = [sys.executable, f"{ROOT}/manage.py", "tune", str(network), *given, *more]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)


def test_a_network_is_tuned_for_a_device_and_verified_on_it(running: Running, tmp_path: Path, zoo_cache: Path) -> None:
    first = tuned(running, zoo.tiny(zoo_cache), tmp_path / "out", "--trials", "24", "--no-archive")
    assert first.returncode == 0, first.stdout + first.stderr
    then = tuned(running, zoo.tiny(zoo_cache), tmp_path / "out", "--trials", "32", "--resume")
    assert then.returncode == 0, then.stdout + then.stderr
    with zipfile.ZipFile(tmp_path / "out" / "tiny.zip") as archive:
        metadata = json.loads(archive.read("metadata.json"))
    assert metadata["verified"]["passed"]
    assert metadata["baselines"] == {}
    assert metadata["latency"]["median"] > 0
    assert metadata["target"]["mtriple"].endswith("-linux-gnu")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["ratio"] is None
    assert summary["verified"]
    key = running.address.key
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    assert not kept, "the key stays where it was"


def test_a_device_that_is_not_there_is_said_at_once(running: Running, tmp_path: Path, zoo_cache: Path) -> None:
    argv = [sys.executable, f"{ROOT}/manage.py", "tune", str(zoo.tiny(zoo_cache)), "--out", str(tmp_path / "out")]
    gone = [*argv, "--device", "127.0.0.1:1", "--device-key", str(running.folder / "key")]
    done = subprocess.run(gone, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode
    assert "the device at 127.0.0.1:1 does not answer (Connection refused)" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    unkeyed = subprocess.run(
        [*argv, "--device", "board"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert "--device needs --device-key FILE" in unkeyed.stdout + unkeyed.stderr
