"""What the archive's run.py refuses, in a line, before the library is loaded: here there is none."""

from __future__ import annotations

import importlib.util
import json
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.child.archive import SHIPPED
from workers.device.__main__ import driver

PORTS = [{"name": "x", "dtype": "float32", "shape": [1, 3]}, {"name": "scale", "dtype": "float32", "shape": []}]
GOOD = {"x": np.zeros((1, 3), np.float32), "scale": np.float32(1)}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    shutil.copyfile(SHIPPED / "run.py", folder / "run.py")
    metadata = {
        "network": "net", "inputs": PORTS, "outputs": [], "threads": 1,
        "target": {"kind": "llvm"}, "hardware": "a processor",
        "requires": {"system": platform.system(), "machine": platform.machine(), "cpu_flags": []},
        "versions": {name: version(name) for name in ("apache-tvm", "apache-tvm-ffi")},
    }  # fmt: skip
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder


def run(archive: Path, *arguments: object) -> tuple[int, str]:
    """Status, and the last line that it said."""
    argv = [sys.executable, str(archive / "run.py"), *map(str, arguments)]
    done = subprocess.run(argv, cwd=archive, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seed", "-1"), "--seed -1 must be 0 or more"),
        (("--runs", "-1"), "--runs -1 must be 0 or more"),
        (("--seconds", "nan"), "--seconds nan must be 0 or more"),
        (("--outputs", "a.npz", "b.npz"), "--outputs names 2 files for 1 of inputs; name one for each"),
        (("--outputs", "nowhere/a.npz"), "--outputs nowhere/a.npz: nothing can be written in nowhere; name a file"),
        (("--outputs", "."), "--outputs .: this is a directory; name a file"),
    ],
)
def test_words_without_sense_are_refused(archive: Path, arguments: tuple[str, ...], said: str) -> None:
    code, line = run(archive, *arguments)
    assert code == 2
    assert line.startswith(f"run.py: error: {said}")


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"arr_0": GOOD["x"]}, "no x among arr_0; the network takes x (float32 (1, 3)), scale (float32 ())"),
        ({}, "no x among nothing; the network takes"),
        ({**GOOD, "x": np.zeros((1, 3))}, "x is float64 (1, 3), the network takes float32 (1, 3); convert it"),
        ({**GOOD, "x": GOOD["x"].astype(">f4")}, "x is >f4 (1, 3), the network takes float32 (1, 3); convert it"),
        ({**GOOD, "scale": np.ones(1, np.float32)}, "scale is float32 (1,), the network takes float32 (); convert it"),
    ],
)
def test_inputs_of_another_kind_are_refused(archive: Path, tmp_path: Path, arrays: dict[str, Any], said: str) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(path, **arrays)
    code, line = run(archive, "--inputs", path)
    assert code == 2
    assert line.startswith(f"run.py: error: --inputs {path}: {said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory; name an .npz file"),
        (b"", "No data left in file; name an .npz file"),
        (b"PK\x03\x04 and no more", "File is not a zip file; name an .npz file"),
        (b"text", "name an .npz file, as numpy.savez writes it"),
        (
            GOOD["x"],
            "one array without a name; write it with numpy.savez, by the names of the inputs: x (float32 (1, 3)), ",
        ),
    ],
)
def test_a_file_that_is_none_of_numpys_is_refused(archive: Path, tmp_path: Path, content: Any, said: str) -> None:
    path = tmp_path / "inputs.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, content)
    code, line = run(archive, "--inputs", path)
    assert code == 2
    assert f"--inputs {path}: " in line
    assert said in line


@pytest.mark.parametrize("unread", [np.zeros(2), np.asarray([{"a": 1}, None])], ids=["numbers", "objects"])
def test_what_the_network_does_not_take_is_of_no_meaning(archive: Path, tmp_path: Path, unread: Any) -> None:
    """An input that nothing reads is not in the library. What ends it here is that there is none."""
    np.savez(tmp_path / "inputs.npz", **GOOD, unread=unread)
    code, line = run(archive, "--inputs", tmp_path / "inputs.npz")
    assert (code, "--inputs" in line, "model.so" in line) == (3, False, True)


def test_an_archive_that_was_not_unpacked_whole_is_refused(archive: Path, tmp_path: Path) -> None:
    shutil.copyfile(SHIPPED / "run.py", tmp_path / "run.py")
    whole = "; unpack the whole archive into one folder"
    assert run(tmp_path) == (3, f"cannot run here: metadata.json: No such file or directory{whole}")
    (tmp_path / "metadata.json").write_text("{")
    code, line = run(tmp_path)
    assert (code, line[: len("cannot run here: metadata.json: ")]) == (3, "cannot run here: metadata.json: ")
    assert line.endswith(whole)
    shutil.copyfile(archive / "metadata.json", tmp_path / "metadata.json")
    assert run(tmp_path) == (3, f"cannot run here: model.so is not there{whole}")


@pytest.mark.skipif(driver(), reason="this machine has an NVIDIA driver")
def test_a_gpus_library_says_what_it_takes_where_there_is_none(archive: Path, tmp_path: Path) -> None:
    shutil.copyfile(archive / "run.py", tmp_path / "run.py")
    metadata = json.loads((archive / "metadata.json").read_text())
    metadata["target"] = {"kind": "cuda", "arch": "sm_90", "host": {"kind": "llvm"}}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    code, line = run(tmp_path)
    assert code == 3
    assert line.startswith("cannot run here: ")
    assert line.endswith("; it takes NVIDIA's driver and CUDA's runtime of version 13 (libcudart.so.13)")


@pytest.mark.parametrize(("quota", "cores"), [("150000", 2), ("-1", 8)])
def test_quotas_of_the_first_version_of_control_groups_count(
    quota: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's, where threads that spin share what it is given."""
    spec = importlib.util.spec_from_file_location("shipped_run", SHIPPED / "run.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    monkeypatch.setattr(script, "GROUPS", tmp_path)
    monkeypatch.setattr(script, "core_of", str)
    monkeypatch.setattr(script.os, "sched_getaffinity", lambda _: set(range(8)))
    assert script.whole_cores() == cores
