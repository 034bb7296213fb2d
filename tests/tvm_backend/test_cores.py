"""Hardware threads of one core do not count as two cores, and are the last to be used."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from workers.child.archive import SHIPPED
from workers.messages import cores, machine


@pytest.fixture
def siblings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six processors of three cores, numbered as Linux often does: 0 and 3 are one."""
    for cpu in range(6):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 3},{cpu % 3 + 3}\n")
    monkeypatch.setattr(cores, "PROCESSORS", tmp_path)
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "none")
    monkeypatch.delenv(machine.THREADS, raising=False)


@pytest.mark.parametrize(("allowed", "whole"), [({0, 1, 2, 3, 4, 5}, 3), ({0, 3}, 1), ({2, 3, 4}, 3)])
@pytest.mark.usefixtures("siblings")
def test_two_hardware_threads_are_one_core(allowed: set[int], whole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    assert cores.usable_cores() == whole


@pytest.mark.usefixtures("siblings")
def test_second_hardware_threads_come_last() -> None:
    assert cores.apart({5, 4, 3, 2, 1, 0}) == [0, 1, 2, 3, 4, 5]
    assert cores.apart({0, 3, 1}) == [0, 1, 3]


def test_a_quota_is_the_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "MEMBERSHIP", tmp_path / "none")
    monkeypatch.delenv(machine.THREADS, raising=False)
    monkeypatch.setattr(cores, "PROCESSORS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert cores.usable_cores() == 2  # nothing tells which are one core's


def test_slow_cores_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two are a board's small ones; the shipped script knows them too."""
    for cpu, capacity in enumerate((446, 446, 1024, 1024)):
        (tmp_path / f"cpu{cpu}").mkdir()
        (tmp_path / f"cpu{cpu}" / "cpu_capacity").write_text(f"{capacity}\n")
    monkeypatch.setattr(cores, "PROCESSORS", tmp_path)
    assert cores.apart(range(4)) == [2, 3, 0, 1]
    shipped = runpy.run_path(str(SHIPPED / "run.py"))["apart"]
    monkeypatch.setitem(shipped.__globals__, "PROCESSORS", tmp_path)
    assert shipped(range(4)) == [2, 3, 0, 1]
    for cpu in range(4):
        (tmp_path / f"cpu{cpu}" / "cpu_capacity").unlink()
        (tmp_path / f"cpu{cpu}" / "cpufreq").mkdir()
        (tmp_path / f"cpu{cpu}" / "cpufreq" / "cpuinfo_max_freq").write_text(f"{4 - cpu}000000\n")
    assert cores.apart({3, 1, 2}) == shipped({3, 1, 2}) == [1, 2, 3]


@pytest.mark.tvm
def test_as_many_threads_are_used_as_are_asked_for() -> None:
    """TVM's pool by itself has no more than there are processors of the highest frequency, here all: one more tells."""
    script = (
        "from workers.tvm_backend import runtime; runtime.load(); import tvm; runtime.spread_threads(); "
        "print(tvm.get_global_func('runtime.NumThreads')())"
    )
    for threads in (2, (os.cpu_count() or 1) + 1):
        told = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True,
            env={**os.environ, "TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0", "OPENBLAS_NUM_THREADS": "1"},
        ).stdout  # fmt: skip
        assert int(told) == threads


def test_the_shipped_script_orders_them_alike() -> None:
    apart = runpy.run_path(str(SHIPPED / "run.py"))["apart"]
    here = os.sched_getaffinity(0)
    assert apart(here) == cores.apart(here)
    assert apart({7777, 9999, 8888}) == [7777, 8888, 9999]
