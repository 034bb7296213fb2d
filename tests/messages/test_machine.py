"""What control groups and the environment leave of a machine."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from workers.messages import machine

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of a service, whose slice is around it; the root of all has no bounds."""
    monkeypatch.delenv(machine.THREADS, raising=False)
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "MEMBERSHIP", tmp_path / "membership")
    (tmp_path / "membership").write_text("1:name=systemd:/other\n0::/system.slice/tuning.service\n")
    found = tmp_path / "cgroup" / "system.slice" / "tuning.service"
    found.mkdir(parents=True)
    (found / "cpu.max").write_text("max 100000\n")
    (found / "memory.max").write_text("max\n")
    return found


@pytest.mark.usefixtures("group")
def test_without_bounds_all_is_there() -> None:
    assert machine.memory() == PHYSICAL
    assert machine.most_cores() == math.inf


def test_the_tightest_bound_around_us_counts(group: Path) -> None:
    (group / "cpu.max").write_text("650000 100000\n")
    (group / "memory.max").write_text(f"{2**30}\n")
    assert (machine.memory(), machine.most_cores()) == (2**30, 7)
    (group.parent / "cpu.max").write_text("300000 100000\n")
    (group.parent / "memory.max").write_text(f"{2**29}\n")
    assert (machine.memory(), machine.most_cores()) == (2**29, 3)


@pytest.mark.parametrize("said", ["0::/../../elsewhere\n", "", None])
def test_a_group_that_cannot_be_seen_is_the_root(group: Path, said: str | None) -> None:
    """As in a container, whose own group is all that it sees."""
    machine.MEMBERSHIP.unlink() if said is None else machine.MEMBERSHIP.write_text(said)
    (machine.CGROUP / "cpu.max").write_text("50000 100000\n")
    assert machine.most_cores() == 1


def test_the_environment_may_take_fewer(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (group / "cpu.max").write_text("400000 100000\n")
    for text, most in (("2", 2), ("16", 4), ("", 4)):
        monkeypatch.setenv(machine.THREADS, text)
        assert machine.most_cores() == most
    for text in ("0", "-1", "all", "2.5"):
        monkeypatch.setenv(machine.THREADS, text)
        with pytest.raises(ValueError, match=f"THREADS={text} must be a whole number of cores"):
            machine.most_cores()


@pytest.mark.parametrize("place", ["docker/ab", ""])
@pytest.mark.parametrize(("quota", "cores"), [("200000", 2), ("150000", 2), ("-1", math.inf)])
def test_groups_of_the_first_version_bound_it_too(group: Path, place: str, quota: str, cores: float) -> None:
    """In a container its own are where its files are, whatever they are called outside."""
    machine.MEMBERSHIP.write_text("4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n1:name=systemd:/docker/ab\n")
    texts = {"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.cfs_period_us": "100000", "memory/memory.limit_in_bytes": 2**29}
    for name, text in texts.items():
        controller, _, file = name.partition("/")
        folder = machine.CGROUP / controller / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(f"{text}\n")
    assert (machine.most_cores(), machine.memory()) == (cores, 2**29)
