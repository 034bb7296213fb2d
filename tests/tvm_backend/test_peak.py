"""The ceiling is of arithmetic from registers: nothing of its loop lies in memory, whatever vectors the processor has."""

from __future__ import annotations

import re

import pytest

from tests.tvm_backend.local import target

pytestmark = pytest.mark.tvm

PROCESSORS = ["haswell", "znver3", "skylake-avx512", "znver4"]


def in_memory(processor: str, lanes: int | None = None) -> int:
    """Lines of the loop's machine code that read or write memory."""
    target()
    import tvm

    from workers.tvm_backend.hardware import vector_lanes
    from workers.tvm_backend.peak import _arithmetic, accumulators

    wanted = tvm.target.Target({**target(), "mcpu": processor})
    held = accumulators(wanted)
    built = tvm.tirx.build(_arithmetic(2, lanes or vector_lanes(wanted), held), target=wanted)
    lines = built.inspect_source("asm").splitlines()
    multiplied = [place for place, line in enumerate(lines) if "vfmadd" in line]
    assert len(multiplied) >= held
    return sum(bool(re.search(r"\(%r", line)) for line in lines[multiplied[0] : multiplied[-1]])


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_ceiling_is_measured_from_registers(processor: str) -> None:
    assert in_memory(processor) == 0


@pytest.mark.mutation
def test_vectors_wider_than_registers_are_noticed() -> None:
    assert in_memory("haswell", 16) > 8


def test_a_timing_is_shorter_than_what_a_scheduler_gives_a_program_at_a_time() -> None:
    """Longer ones are never left alone where programs wait for the cores: slices are three milliseconds, or few more."""
    target()
    import tvm

    from workers.tvm_backend.hardware import vector_lanes
    from workers.tvm_backend.peak import STEPS, accumulators, arithmetic_peak

    here = tvm.target.Target(target())
    work = 2.0 * accumulators(here) * vector_lanes(here) * STEPS
    assert work / arithmetic_peak(here, 1) < 1.5e-3
