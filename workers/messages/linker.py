"""What makes a shared library of a compiled network: the one rule for the child that links and for whoever looks ahead."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.util import find_spec

COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
"""Those that TVM's export tries, in its order."""
ZIG = "ziglang"
PIP = f"{sys.executable} -m pip install"
"""For the Python that asks: a terminal's may be another."""
WHEEL = f"the wheel ({PIP} ziglang, 411 MB)"
ADVICE = f"install a compiler (apt install g++) or {WHEEL}"

CUDA = f"{PIP} cuda-bindings nvidia-cuda-nvrtc"
"""What makes a GPU's machine code."""


def find_linker(triple: str = "") -> str | None:
    """A compiler for the machine of that LLVM `triple`, for this one without: its path, ZIG for the wheel of that name, which
    links for every machine, or None: artifacts cannot be made here."""
    for name in COMPILERS if native(triple) else (f"{gnu(triple)}-gcc",):
        if found := shutil.which(name):
            return found
    return ZIG if find_spec(ZIG) is not None else None


def advice(triple: str = "") -> str:
    """What to install where there is none."""
    if native(triple):
        return ADVICE
    package = f"gcc-{gnu(triple)}".replace("_", "-")
    return f"install a compiler for it (apt install {package}) or {WHEEL}"


def native(triple: str) -> bool:
    """Whether it is of machines like this one."""
    return not triple or _machine(triple) == platform.machine()


def gnu(triple: str) -> str:
    """As compilers of the GNU project are named: LLVM's may name a vendor too."""
    return f"{_machine(triple)}-linux-gnu"


def _machine(triple: str) -> str:
    return triple.split("-")[0]
