"""What `python -m workers.device` says on its terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.device.running import device as running_device
from tests.processes import eventually
from workers.device.__main__ import driver, held_folder, without_confined_gpu
from workers.sandbox.spawn import ROOT

pytestmark = pytest.mark.tvm

OLDER_KERNEL = """
import sys
from workers.device import __main__ as device
from workers.sandbox.protection import Protection
device.offered = lambda: Protection(2, True)
sys.exit(device.main())
"""


def test_a_terminal_is_told_the_key_its_file_and_what_holds_nothing_back(tmp_path: Path) -> None:
    path = tmp_path / "key"
    ours, theirs = os.openpty()
    argv = [sys.executable, "-c", OLDER_KERNEL, "--port", "0", "--key", str(path)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=theirs) as process, open(ours) as terminal:
        os.close(theirs)
        said = [terminal.readline() for _ in range(3)]
        process.terminate()
    assert said[0].endswith(f"; the key is {path.read_text().strip()}, in {path}\n")
    held = "Landlock version 2; a filter on system calls; it takes Landlock version 6, the kernel offers 2"
    assert said[2] == f"programs of sites are not fully held back here: {held}\n"


def test_a_python_that_is_too_old_is_said_before_anything_is_tuned(tmp_path: Path) -> None:
    script = "import sys; sys.version_info = (3, 10); from workers.device import __main__ as device; device.main()"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "error: Python 3.11 or newer is needed, and this is " in done.stderr


@pytest.mark.skipif(driver(), reason="this machine has an NVIDIA driver")
def test_a_gpu_is_not_waited_for_without_its_driver(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "workers.device", "--gpu", "--port", "0", "--key", str(tmp_path / "key")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(
        "error: --gpu: there is no NVIDIA driver here (libcuda.so.1); leave it out to time on the processor\n"
    )


def found() -> None:
    """A GPU."""


def lost() -> None:
    raise RuntimeError("CUDA: unknown error\nno device is to be opened")


def ended() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("cuda", "said"), [(found, ""), (lost, "no device is to be opened"), (ended, "its process was ended by signal 9")]
)
def test_whether_a_gpu_is_there_for_who_is_held_back_is_asked_of_such_a_process(
    lock_of_its_own: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuda: Callable[[], None], said: str
) -> None:
    from workers.device import orders

    held = list[tuple[Path, ...]]()

    def confine(device: orders.Device, *hidden: Path) -> None:
        held.append(hidden)

    monkeypatch.setattr(orders.Device, "confine", confine)

    def hardware(device: orders.Device, peak: bool) -> None:
        assert held == [(tmp_path / "key",)]
        cuda()

    monkeypatch.setattr(orders.Device, "hardware", hardware)
    assert without_confined_gpu(tmp_path / "key") == said
    assert not held, "this process is as it was"


def test_packages_that_are_missing_are_said_with_what_installs_them(tmp_path: Path) -> None:
    argv = [sys.executable, "-S", "-m", "workers.device", "--port", "0", "--key", str(tmp_path / "key")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    wanted = (Path(ROOT) / "requirements.txt").read_text().splitlines()
    pins = [pin for pin in wanted if pin.startswith(("numpy==", "apache-tvm==", "apache-tvm-ffi=="))]
    assert done.returncode == 2
    assert (
        f"there is no Python package 'tvm' here; run: {sys.executable} -m pip install {' '.join(pins)}" in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_what_a_killed_device_leaves_the_next_one_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gigabytes, perhaps of memory; what another one holds, and what is not ours to remove, stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, kept = tmp_path / "tuningsite-device-left", tmp_path / "kept"
    for folder in (left, kept):
        (folder / "connection-1").mkdir(parents=True)
        (folder / "lock").touch()
    (tmp_path / "tuningsite-device-link").symlink_to(kept)
    with held_folder() as (base, _), held_folder() as (another, _):
        assert not left.exists()
        assert kept.exists()
        assert Path(base).exists()
        assert Path(another).exists()
    assert not Path(base).exists()


def test_a_device_that_is_killed_leaves_a_folder_that_nobody_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_device(tmp_path) as running:
        line = running.call()
        (left,) = tmp_path.glob("tuningsite-device-*")
        assert [*left.glob("connection-*")]
        running.end(signal.SIGKILL)
        line.close()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    eventually(lambda: not leaving(left), 10.0, "its removal")


def leaving(left: Path) -> bool:
    """Whether it is there once another listener has begun."""
    with held_folder():
        return left.exists()
