"""Libraries for machines of another kind."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from tests import zoo
from tests.tvm_backend.local import spec_of
from workers.messages import linker as finding
from workers.networks.clean import cleaned

pytestmark = pytest.mark.tvm

BOARD = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "num-cores": 4}
ARM, MACHINE = 183, 18
"""EM_AARCH64, and where an ELF file says what it is for."""


def test_rules_of_a_first_configuration_know_its_vectors() -> None:
    from workers.tvm_backend.backend import machine_of

    board = machine_of(BOARD, 4, (32768, 524288))
    assert (board.lanes, board.registers, board.cores, board.cache, board.second) == (4, 32, 4, 32768, 524288)


@pytest.mark.skipif(finding.find_linker("aarch64-linux-gnu") is None, reason=finding.advice("aarch64-linux-gnu"))
def test_every_operator_is_built_for_it_with_its_first_configuration(tmp_path: Path, zoo_cache: Path) -> None:
    from workers.tvm_backend import runtime

    runtime.load(BOARD)
    import tvm

    from workers.tvm_backend.backend import machine_of
    from workers.tvm_backend.importer import import_network
    from workers.tvm_backend.operators import extract, operators, with_spaces
    from workers.tvm_backend.programs import export_programs

    spec, target = spec_of(zoo.tiny(zoo_cache)), tvm.target.Target(BOARD)
    imported = import_network(cleaned(spec.network, spec.inputs), spec.inputs, target, "auto", None)
    extracted, workloads, left = with_spaces(extract(imported.mod, target), target)
    assert not left
    found = operators(extracted, workloads, 2e10, 3e9, machine_of(BOARD, 4, (32768, 524288)))
    first = [(workload, one.start[0]) for workload, one in zip(workloads, found, strict=True)]
    schedules = [workload.schedule(start.sketch, start.choices) for workload, start in first]
    names = export_programs(schedules, target, tmp_path / "programs.so")
    assert len(names) == len(workloads) > 3
    told = (tmp_path / "programs.so").read_bytes()
    assert struct.unpack_from("<H", told, MACHINE) == (ARM,)
    assert [path.name for path in tmp_path.iterdir()] == ["programs.so"]


def test_without_a_compiler_for_it_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import tvm

    from workers.tvm_backend.linking import NoLinker, linker

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(finding, "find_spec", lambda name: None)
    with pytest.raises(
        NoLinker, match=r"no linker for aarch64-linux-gnu: install a compiler for it .apt install gcc-aarch64"
    ):
        linker(tvm.target.Target(BOARD))
    with pytest.raises(NoLinker, match=r"no linker for this machine: install a compiler .apt install g"):
        linker()


@pytest.mark.parametrize("triple", ["", "aarch64-linux-gnu"])
def test_the_wheel_links_where_there_is_no_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, triple: str
) -> None:
    """It is asked as its own command is; whether it is there is another matter."""
    import tvm

    from workers.tvm_backend import linking

    monkeypatch.setattr(linking, "find_linker", lambda triple: finding.ZIG)
    asked = tmp_path / "ziglang.py"
    asked.write_text("import sys\nopen(sys.argv[sys.argv.index('-o') + 1], 'w').write(' '.join(sys.argv[1:]))\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = linking.linker(tvm.target.Target({**BOARD, "mtriple": triple}) if triple else None)
    assert found is not None
    found(str(tmp_path / "made.so"), ["a.o", "b.o"], ["-O2"])
    named = f"-target {triple} " if triple else ""
    assert (tmp_path / "made.so").read_text() == f"cc -shared -fPIC {named}-O2 -o {tmp_path / 'made.so'} a.o b.o"
    asked.write_text(asked.read_text() + "print(sys.argv, file=open('asked', 'a'))\n")
    monkeypatch.chdir(tmp_path)
    linking.warm(tvm.target.Target({**BOARD, "mtriple": triple or "x86_64-linux-gnu"}), tmp_path)
    assert "nothing.c" in (tmp_path / "asked").read_text()
    assert not list(tmp_path.glob("nothing*"))
    asked.write_text("import sys\nsys.exit('no room')\n")
    linking.warm(tvm.target.Target({**BOARD, "mtriple": triple or "x86_64-linux-gnu"}), tmp_path)
    with pytest.raises(RuntimeError, match="-m ziglang cc failed: no room"):
        found(str(tmp_path / "made.so"), ["a.o"])
