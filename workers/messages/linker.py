"""What makes a shared library of a compiled network: the one rule for the child that links and for whoever looks ahead."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
"""Those that TVM's export tries, in its order."""
ZIG = "ziglang"
ADVICE = "install a compiler (apt install g++) or the wheel (pip install ziglang, 411 MB)"


def find_linker() -> str | None:
    """A compiler's path, ZIG for the wheel of that name, or None: artifacts cannot be made on this machine."""
    for name in COMPILERS:
        if found := shutil.which(name):
            return found
    return ZIG if find_spec(ZIG) is not None else None
