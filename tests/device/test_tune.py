"""`manage.py tune --device`: from a file to an archive that was verified on the device, and on again after a break."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import zoo
from tests.device.running import Running, device
from tests.tvm_backend.local import spec_of
from workers.child.peers import ArtifactFailed
from workers.sandbox.spawn import ROOT

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with device(tmp_path_factory.mktemp("device")) as one:
        yield one


def tuned(running: Running, network: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    given = ["--device", str(running.address), "--device-key", str(running.folder / "key"), "--out", str(out)]
    argv = [sys.executable, f"{ROOT}/manage.py", "tune", str(network), *given, *more]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)


def test_a_network_is_tuned_for_a_device_and_verified_on_it(running: Running, tmp_path: Path, zoo_cache: Path) -> None:
    first = tuned(running, zoo.tiny(zoo_cache), tmp_path / "out", "--trials", "24", "--no-archive")
    assert first.returncode == 0, first.stdout + first.stderr
    then = tuned(running, zoo.tiny(zoo_cache), tmp_path / "out", "--trials", "32", "--resume")
    assert then.returncode == 0, then.stdout + then.stderr
    with zipfile.ZipFile(tmp_path / "out" / "tiny.zip") as archive:
        metadata = json.loads(archive.read("metadata.json"))
    assert metadata["verified"]["passed"]
    assert metadata["baselines"]["ONNX Runtime"]["median"] > 0, "it is installed where this device is"
    assert metadata["latency"]["median"] > 0
    assert metadata["target"]["mtriple"].endswith("-linux-gnu")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["ratio"] > 0
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


def test_where_onnx_runtime_is_not_installed_there_is_nothing_to_compare_with(
    running: Running, tmp_path: Path, zoo_cache: Path
) -> None:
    from workers.child.elsewhere import Elsewhere

    (tmp_path / "model.so").write_bytes(b"")
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / "run.py").write_text("print('loading')\nprint('{\"seconds\": [0.25, 0.25]}')\n")
    line, said = running.call(), list[str]()
    try:
        there, peer = Elsewhere(line, tmp_path, print), line.greeting["onnxruntime"]
        line.greeting["onnxruntime"] = False
        ours, theirs = there.timed(spec_of(zoo.tiny(zoo_cache)), said.append)
        assert (ours.median, theirs, said) == (0.25, None, [])
        line.greeting["onnxruntime"] = peer
        (tmp_path / "network.onnx").write_bytes(b"no network")
        ours, theirs = there.timed(
            replace(spec_of(zoo.tiny(zoo_cache)), network=str(tmp_path / "network.onnx")), said.append
        )
        assert (ours.median, theirs) == (0.25, None)
        assert said[0].startswith("ONNX Runtime failed on the device: ")
        (tmp_path / "run.py").write_text("raise SystemExit('cannot run here: no room')\n")
        there.put(tmp_path / "run.py")
        with pytest.raises(ArtifactFailed, match=r"run\.py failed on the device: cannot run here: no room"):
            there.timed(spec_of(zoo.tiny(zoo_cache)), said.append)
    finally:
        line.close()


def test_outputs_come_whole_from_a_library_that_says_much(running: Running, tmp_path: Path) -> None:
    from workers.child.elsewhere import Elsewhere

    (tmp_path / "model.so").write_bytes(b"")
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / "run.py").write_text(
        "import sys\nprint('x' * 30_000_000)\n"
        "open(sys.argv[-3], 'wb').write(bytes(range(250)) * 40_000)\n"
        "print('{\"seconds\": []}')\n"
    )
    line, found = running.call(), tmp_path / "outputs.npz"
    try:
        Elsewhere(line, tmp_path, print).outputs([], [found], 10_000_000)
    finally:
        line.close()
    assert found.read_bytes() == bytes(range(250)) * 40_000
