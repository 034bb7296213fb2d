"""What tells one machine from another."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.messages import machine

CPU = """processor\t: {number}
model name\t: AMD EPYC
cpu MHz\t\t: {speed}
flags\t\t: fpu avx2{more}

processor\t: 1
flags\t\t: fpu
"""


@pytest.fixture
def processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "PROCESSOR", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.delenv(machine.THREADS, raising=False)
    (tmp_path / "cpuinfo").write_text(CPU.format(number=0, speed=2596.1, more=""))
    return tmp_path / "cpuinfo"


def test_it_is_the_same_from_look_to_look(processor: Path) -> None:
    before = machine.fingerprint()
    assert (before["model name"], before["flags"]) == ("AMD EPYC", "fpu avx2")
    processor.write_text(CPU.format(number=0, speed=3100.0, more=""))
    assert machine.fingerprint() == before


def test_other_instruction_sets_and_another_quota_make_another_machine(processor: Path) -> None:
    before = machine.fingerprint()
    processor.with_name("cpu.max").write_text("150000 100000\n")
    fewer = machine.fingerprint()
    processor.write_text(CPU.format(number=0, speed=2596.1, more=" avx512f"))
    assert before != fewer != machine.fingerprint()


def test_a_kernel_that_tells_nothing_is_no_error(processor: Path) -> None:
    processor.unlink()
    assert machine.fingerprint()["machine"]
