"""What this machine is, as far as tuning cares: processor, instruction sets, usable cores, memory, and TVM's target."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tvm

from workers.engine import machine
from workers.messages.cores import usable_cores
from workers.messages.machine import memory, processor


@dataclass(frozen=True)
class Hardware:
    """`flags` are the kernel's names of the instruction sets TVM may use here; `memory` in bytes; `target` is TVM's dict."""

    name: str
    system: str
    machine: str
    cores: int
    memory: int
    flags: tuple[str, ...]
    target: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "flags": list(self.flags)}


def detect() -> Hardware:
    """Of the machine this runs on."""
    cores = usable_cores()
    kernel = kernel_flags()
    target = cpu_target(kernel, cores)
    features = _features(tvm.target.Target(target))
    flags = tuple(sorted(flag for flag in kernel if _llvm_name(flag) in features))
    name = cpu_name() or f"{board() or platform.machine()} ({target['mcpu']})"  # ARM's kernel tells no name
    return Hardware(name, platform.system(), platform.machine(), cores, memory(), flags, target)


class OtherProcessor(ValueError):
    """What is to run here was begun on a machine of another processor."""

    next_step = (
        "start another run, of this machine as it is measured now (Targets: Measure again); what this one found stays"
    )


def check_processor(target: dict[str, Any]) -> None:
    """Raises OtherProcessor where `target` names another processor than this machine's; how many cores it has is no matter."""
    told, here = _processor(target), _processor(cpu_target(kernel_flags(), usable_cores()))
    if "mcpu" in target and told != here:
        raise OtherProcessor(f"this run is of another processor ({told}) than this machine's ({here})")


class FewerCores(ValueError):
    """A run is of more threads than there are cores, as when it was asked for where there were more."""

    next_step = "give the site as many as before (THREADS, the container's quota), or start another run"


def check_cores(threads: int) -> None:
    """Raises FewerCores where kernels of so many threads would share cores: their times were another machine's."""
    if threads > (here := usable_cores()):
        raise FewerCores(f"this run is of {threads} threads, and {here} cores may be used now")


def _processor(target: dict[str, Any]) -> str:
    """Of a target, with what the kernel showed beyond what LLVM knows of it."""
    return " ".join([str(target["kind"]), str(target.get("mcpu", "")), *target.get("mattr", ())])


USED = frozenset(
    "avx avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512cd avx512_vnni avx_vnni "
    "bmi1 bmi2 abm sve sve2 i8mm bf16 asimddp asimdhp".split()
)
"""Instruction sets, by the kernel's names, that LLVM makes code of and that a machine may have, or lack, unlike the processor
that it is taken for; beside them whatever LLVM knows of AVX-512."""


def cpu_target(kernel: set[str], cores: int) -> dict[str, Any]:
    """The dict for TVM. LLVM may know the processor only as an older one: what the kernel shows beyond it is added, and what a
    virtual machine hides of it is taken away.

    'native' is no processor for TVM, and without `mcpu` there is neither AVX nor FMA; `num-cores` is mandatory.
    """
    mcpu = str(tvm.target.codegen.llvm_get_system_cpu())
    target: dict[str, Any] = {"kind": "llvm", "mcpu": mcpu, "num-cores": cores}
    known = _features(tvm.target.Target(target))
    shown = {_llvm_name(flag) for flag in kernel}
    wanted = {*map(_llvm_name, USED), *(name for name in known if name.startswith("avx512") or name == "gfni")}
    hidden = (wanted - shown - {"avxvnni"}) & known if kernel else ()  # kernels before 5.11 do not show that one
    more = [*(f"+{name}" for name in sorted((shown & wanted) - known)), *(f"-{name}" for name in sorted(hidden))]
    return {**target, "mattr": more} if more else target


def vector_lanes(target: tvm.target.Target) -> int:
    """Of the target, see `machine.vector_lanes`."""
    return machine.vector_lanes(_features(target))


def product_widths(target: tvm.target.Target, count: int) -> tuple[int, ...]:
    """How many sums of so many products of whole numbers, 2 of 16 bits or 4 of 8, the target makes at once, the most first;
    none without such an instruction."""
    features = _features(target)
    of_four = "avxvnni" in features or {"avx512vnni", "avx512vl"} <= features
    found = {
        2: {16: "avx512bw" in features, 8: "avx2" in features, 4: "sse2" in features},
        4: {16: "avx512vnni" in features, 8: of_four, 4: of_four},
    }
    return tuple(lanes for lanes, there in found[count].items() if there)


def vector_registers(target: tvm.target.Target) -> int:
    """Of the target, see `machine.vector_registers`."""
    return machine.vector_registers(_features(target))


CPUS = Path("/sys/devices/system/cpu")


def core_caches(of: Path = CPUS / "cpu0/cache") -> tuple[int | None, int | None]:
    """Bytes of a core's first- and second-level cache for data, None where the kernel does not tell."""
    found = {level: size for level, size, _ in _caches(of)}
    return found.get(1), found.get(2)


def last_caches(of: Path = CPUS) -> int:
    """Bytes of all caches of the last level, those that cores share counted once; 0 where the kernel does not tell."""
    found = {(level, cores): size for cpu in of.glob("cpu[0-9]*") for level, size, cores in _caches(cpu / "cache")}
    last = max((level for level, _ in found), default=0)
    return sum(size for (level, _), size in found.items() if level == last)


def _caches(of: Path) -> Iterator[tuple[int, int, str]]:
    """Level, bytes, and whose it is, of each cache for data."""
    for index in sorted(of.glob("index*")):
        try:
            names = ("level", "type", "size", "shared_cpu_list")
            level, kind, size, cores = ((index / name).read_text().strip() for name in names)
            if kind in ("Data", "Unified"):
                yield int(level), int(size.removesuffix("K")) * 1024, cores
        except (OSError, ValueError):
            continue


def cpu_name() -> str:
    """As the kernel gives it, empty where it tells none; with family and model where a virtual machine hides which processor of
    a line it is."""
    found = processor()
    name = found.get("model name", "")
    hidden = {"cpu family", "model"} <= set(found) and not any(letter.isdigit() for letter in name)
    return f"{name} (family {found['cpu family']}, model {found['model']})" if hidden else name


BOARDS = (Path("/proc/device-tree/model"), Path("/sys/class/dmi/id/product_name"))


def board() -> str:
    """What the machine is called where its processor has no name; "" where nobody says."""
    for path in BOARDS:
        with suppress(OSError):
            if name := path.read_text(errors="replace").strip("\0 \n"):
                return name[:60]
    return ""


def kernel_flags() -> set[str]:
    """Instruction sets by the kernel's names."""
    found = processor()
    return set((found.get("flags") or found.get("Features") or "").split())


def host_of(target: tvm.target.Target) -> tvm.target.Target:
    """The processor that starts a GPU's programs, or that of the target itself."""
    return target.host or target


def is_gpu(target: tvm.target.Target) -> bool:
    return str(target.kind.name) == "cuda"


def _features(target: tvm.target.Target) -> set[str]:
    """By LLVM's names; a GPU has none."""
    if is_gpu(target):
        return set()
    return {str(name) for name in tvm.target.codegen.llvm_get_cpu_features(target)}


_OTHERWISE = {
    "avx_vnni": "avxvnni", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "pni": "sse3", "abm": "lzcnt", "bmi1": "bmi",
    "asimd": "neon", "asimddp": "dotprod", "asimdhp": "fullfp16", "asimdrdm": "rdm", "atomics": "lse",
    "lrcpc": "rcpc", "crc32": "crc",
}  # fmt: skip
"""LLVM's names of instruction sets of x86 and ARM, by the kernel's."""


def _llvm_name(flag: str) -> str:
    """LLVM writes avx512vnni where the kernel writes avx512_vnni."""
    return _OTHERWISE.get(flag, flag.replace("avx512_", "avx512"))
