"""What the rules of a first configuration are told of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.engine.machine import Machine

pytestmark = pytest.mark.tvm


def caches(folder: Path, *told: tuple[str, str, str], cores: str = "0") -> Path:
    for number, texts in enumerate(told):
        index = folder / f"index{number}"
        index.mkdir(parents=True)
        for name, text in zip(("level", "type", "size", "shared_cpu_list"), (*texts, cores), strict=True):
            (index / name).write_text(f"{text}\n")
    return folder


def test_what_caches_a_core_has_is_read_from_the_kernel(tmp_path: Path) -> None:
    from workers.tvm_backend.hardware import core_caches

    told = caches(tmp_path, ("1", "Instruction", "64K"), ("1", "Data", "48K"), ("2", "Unified", "2048K"))
    assert core_caches(told) == (48 * 1024, 2048 * 1024)
    assert core_caches(tmp_path / "nowhere") == (None, None)
    (tmp_path / "index1" / "size").write_text("many")
    assert core_caches(told) == (None, 2048 * 1024)


def test_caches_that_cores_share_count_once(tmp_path: Path) -> None:
    from workers.tvm_backend.hardware import last_caches

    for cpu, cores in enumerate(("0-1", "0-1", "2-3", "2-3")):
        caches(tmp_path / f"cpu{cpu}" / "cache", ("1", "Data", "48K"), ("3", "Unified", "32768K"), cores=cores)
    (tmp_path / "cpufreq").mkdir()
    assert last_caches(tmp_path) == 2 * 32768 * 1024
    assert last_caches(tmp_path / "nowhere") == 0


@pytest.mark.parametrize(
    ("target", "lanes", "registers"),
    [
        ({"kind": "llvm", "mcpu": "x86-64"}, 4, 16),
        ({"kind": "llvm", "mcpu": "haswell"}, 8, 16),
        ({"kind": "llvm", "mcpu": "skylake-avx512"}, 16, 32),
    ],
)
def test_lanes_and_registers_follow_the_vector_extension(target: dict[str, str], lanes: int, registers: int) -> None:
    from workers.tvm_backend.backend import machine_of

    machine = machine_of(target, 2)
    assert (machine.lanes, machine.registers, machine.cores) == (lanes, registers, 2)


@pytest.mark.parametrize(
    ("told", "taken"),
    [((49152, 1 << 21), (49152, 1 << 21)), ((None, None), (Machine.cache, Machine.second))],
)
def test_the_rules_know_the_caches_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, told: tuple[int | None, ...], taken: tuple[int, ...]
) -> None:
    from workers.tvm_backend import backend

    monkeypatch.setattr(backend, "core_caches", lambda: told)
    machine = backend.machine_of({"kind": "llvm", "mcpu": "haswell"}, 2)
    assert isinstance(machine, Machine)
    assert (machine.cache, machine.second) == taken


def test_an_arm_machine_has_its_own_intrinsics_and_names_its_instructions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its target names no triple when it is tuned for itself, and its kernel neither a processor nor LLVM's names."""
    from workers.tvm_backend import hardware
    from workers.tvm_backend.runtime import intrinsics_of

    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert intrinsics_of({"kind": "llvm"}) == "arm_cpu"
    assert intrinsics_of({"kind": "llvm", "mtriple": "x86_64-linux-gnu"}) == "x86"
    monkeypatch.setattr(hardware, "_features", lambda _: {"neon", "dotprod", "lse"})
    told = {"processor": "0", "Features": "fp asimd atomics asimddp cpuid", "CPU part": "0xd0c"}
    monkeypatch.setattr(hardware, "processor", lambda: told)
    monkeypatch.setattr(hardware, "BOARDS", (tmp_path / "none", tmp_path / "model"))
    found = hardware.detect()
    assert found.flags == ("asimd", "asimddp", "atomics")
    assert found.name == f"aarch64 ({found.target['mcpu']})"
    (tmp_path / "model").write_bytes(b"Raspberry Pi 5 Model B Rev 1.0\0")
    assert hardware.detect().name == f"Raspberry Pi 5 Model B Rev 1.0 ({found.target['mcpu']})"


FIRST = ("avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm")
LATER = tuple(f"avx512{part}" for part in ("bw", "cd", "dq", "f", "vl"))


@pytest.mark.parametrize(
    ("shown", "mattr", "lanes"),
    [
        ((*FIRST, *LATER), None, 16),
        ((*FIRST, *LATER, "avx512_vnni"), ["+avx512vnni"], 16),
        (FIRST, [f"-{name}" for name in LATER], 8),
        ((), None, 16),
    ],
    ids=["all", "more", "hidden", "untold"],
)
def test_what_a_virtual_machine_hides_of_its_processor_is_not_compiled_for(
    shown: tuple[str, ...], mattr: list[str] | None, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end the first program with an illegal instruction; a kernel that tells nothing hides nothing."""
    from workers.tvm_backend import hardware

    monkeypatch.setattr(hardware.tvm.target.codegen, "llvm_get_system_cpu", lambda: "skylake-avx512")
    found = hardware.cpu_target(set(shown), 2)
    assert found.get("mattr") == mattr
    assert hardware.vector_lanes(hardware.tvm.target.Target(found)) == lanes


def test_what_small_processors_lack_and_arm_machines_hide_is_not_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Pentium of Skylake's has neither AVX nor the moves and shifts that came with it."""
    from workers.tvm_backend import hardware

    monkeypatch.setattr(hardware.tvm.target.codegen, "llvm_get_system_cpu", lambda: "skylake")
    assert hardware.cpu_target({"sse4_2", "abm"}, 2)["mattr"] == [
        f"-{n}" for n in ("avx", "avx2", "bmi", "bmi2", "f16c", "fma")
    ]
    assert "mattr" not in hardware.cpu_target({*FIRST}, 2)
    monkeypatch.setattr(hardware, "_features", lambda _: {"neon", "sve", "bf16", "dotprod"})
    assert hardware.cpu_target({"asimd", "asimddp", "i8mm"}, 2)["mattr"] == ["+i8mm", "-bf16", "-sve"]


def test_newer_parts_that_are_hidden_of_a_newer_processor_are_not_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster shows what all of its hosts have: a library of one that has more would end on the others."""
    from workers.tvm_backend import hardware

    monkeypatch.setattr(hardware.tvm.target.codegen, "llvm_get_system_cpu", lambda: "icelake-server")
    hidden = hardware.cpu_target({*FIRST, *LATER, "avx512_vnni"}, 2)["mattr"]
    assert {"-avx512vbmi", "-avx512vbmi2", "-avx512ifma", "-avx512bitalg", "-avx512vpopcntdq", "-gfni"} <= set(hidden)
    assert not {"-avx512vnni", "-avx512f"} & set(hidden)
    kernel = {"avx512vbmi", "avx512_vbmi2", "avx512ifma", "avx512_bitalg", "avx512_vpopcntdq", "gfni"}
    assert "mattr" not in hardware.cpu_target({*FIRST, *LATER, "avx512_vnni", *kernel}, 2)
    newer = hardware.cpu_target({*FIRST, *LATER, "avx512_vnni", "avx_vnni", *kernel}, 2)
    assert newer["mattr"] == ["+avxvnni"], "what LLVM does not know of it is added"
