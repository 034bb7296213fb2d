"""Hardware threads of one core do not count as two cores, and are the last to be used."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

from workers.child.artifact import SHIPPED
from workers.tvm_backend import cores


@pytest.fixture
def siblings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six processors of three cores, numbered as Linux often does: 0 and 3 are one."""
    for cpu in range(6):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 3},{cpu % 3 + 3}\n")
    monkeypatch.setattr(cores, "PROCESSORS", tmp_path)
    monkeypatch.setattr(cores, "CGROUP", tmp_path / "none")


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
    monkeypatch.setattr(cores, "CGROUP", tmp_path)
    monkeypatch.setattr(cores, "PROCESSORS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert cores.usable_cores() == 2  # nothing tells which are one core's


def test_the_shipped_script_orders_them_alike() -> None:
    apart = runpy.run_path(str(SHIPPED / "run.py"))["apart"]
    here = os.sched_getaffinity(0)
    assert apart(here) == cores.apart(here)
    assert apart({7777, 9999, 8888}) == [7777, 8888, 9999]
