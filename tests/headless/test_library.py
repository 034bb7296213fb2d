"""The archive's class for programs: called from threads, beside other libraries, in a server that forks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workers.messages.cores import usable_cores

pytestmark = pytest.mark.tvm
BEGINS = """
import os, sys, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from run import Library
mine = os.sched_getaffinity(0)
network = Library()
(port,) = network.metadata["inputs"]
random = np.random.default_rng(3)
inputs = [{port["name"]: random.standard_normal(port["shape"]).astype(port["dtype"])} for _ in range(16)]
def held():
    return [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
"""


def program(folder: Path, text: str, begins: str = BEGINS, **variables: str) -> str:
    """What it prints."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TVM_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", begins + text], cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**kept, **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_calls_of_many_threads_get_their_own_outputs(unpacked: Path) -> None:
    text = """
alone = [network(given) for given in inputs]
with ThreadPoolExecutor(4) as threads:
    together = list(threads.map(network, inputs * 12))
same = all(np.array_equal(alone[i % 16][name], outputs[name]) for i, outputs in enumerate(together) for name in outputs)
unlike = not np.array_equal(*(list(outputs.values())[0] for outputs in alone[:2]))
print(same, unlike, all(array.flags.owndata and array.flags.writeable for array in alone[0].values()))
"""
    assert program(unpacked, text) == "True True True"


def test_the_program_keeps_its_cores_and_its_packages(unpacked: Path) -> None:
    assert program(unpacked, "print(os.sched_getaffinity(0) == mine, 'torch' in sys.modules)") == "True False"


@pytest.mark.skipif(usable_cores() < 2, reason="one core is all that there is")
def test_threads_are_pinned_to_cores_that_it_takes_all(unpacked: Path) -> None:
    """Several processes with the same cores to choose from would all take the same first ones."""
    pinned = "print(sum(len(cores) == 1 for cores in held()))"
    assert program(unpacked, pinned, TVM_NUM_THREADS="1") == "0"
    assert program(unpacked, f"network = Library(pin=True)\n{pinned}", TVM_NUM_THREADS="1") == "1"
    every = str(usable_cores())
    assert program(unpacked, pinned, TVM_NUM_THREADS=every) == every
    free = BEGINS.replace("Library()", "Library(pin=False)")
    assert program(unpacked, pinned, free, TVM_NUM_THREADS=every) == "0"


def test_a_call_after_a_fork_is_refused_in_place_of_waiting_for_ever(unpacked: Path) -> None:
    text = """
child = os.fork()
if not child:
    try:
        network(inputs[0])
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert program(unpacked, text).endswith("load it in each process")


def test_arrays_of_another_kind_are_refused(unpacked: Path) -> None:
    text = """
for given in ({}, {port["name"]: np.zeros(3)}):
    try:
        network(given)
    except ValueError as error:
        print(error)
"""
    missing, other = program(unpacked, text).splitlines()
    assert "among nothing; the network takes" in missing
    assert "is float64 (3,), the network takes float32" in other


def test_a_second_library_is_not_kept_to_the_threads_of_the_first(unpacked: Path, tmp_path: Path) -> None:
    """Its own are fewer than the machine's cores; nobody said how many all have."""
    other = tmp_path / "other"
    other.mkdir()
    for name in ("model.so", "run.py"):
        shutil.copyfile(unpacked / name, other / name)
    metadata = json.loads((unpacked / "metadata.json").read_text())
    (other / "metadata.json").write_text(json.dumps({**metadata, "threads": 1}))
    text = """
import importlib.util
spec = importlib.util.spec_from_file_location("second", "other/run.py")
second = importlib.util.module_from_spec(spec)
spec.loader.exec_module(second)
first = os.environ["TVM_NUM_THREADS"]
second.Library()
fewer = os.environ["TVM_NUM_THREADS"]
Library()
print(fewer, os.environ["TVM_NUM_THREADS"] == first)
"""
    assert program(unpacked, text) == "1 True"


def test_outputs_that_cannot_be_written_leave_nothing(unpacked: Path) -> None:
    """As on a full disk: a file may have no byte here."""
    begins = "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    script = (
        f"{begins}; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9)); runpy.run_path('run.py', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "--runs", "1", "--outputs", "outputs.npz"], cwd=unpacked, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, (unpacked / "outputs.npz").exists()) == (3, False)
    assert done.stderr.endswith("--outputs outputs.npz: File too large; name a file that can be written\n")
