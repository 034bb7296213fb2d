"""Shared libraries of what TVM compiled, for this machine and for others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import tvm

from workers.messages.linker import ZIG, advice, find_linker, gnu, native
from workers.tvm_backend.hardware import host_of, is_gpu
from workers.tvm_backend.nvrtc import check, check_driver


class NoLinker(RuntimeError):
    """Nothing on this machine can link a shared library."""


def linker(target: tvm.target.Target | None = None) -> Callable[..., Any] | None:
    """What TVM's export links with for the target's machine: None for the system's compiler on this one, else a compiler for
    that machine or the ziglang wheel's. Raises NoLinker."""
    triple = str(host_of(target).attrs.get("mtriple", "")) if target is not None else ""
    found = find_linker(triple)
    if found is None:
        raise NoLinker(f"no linker for {triple or 'this machine'}: {advice(triple)}")
    if found != ZIG and native(triple):
        return None
    from tvm.support.cc import cross_compiler

    if found != ZIG:
        return cross_compiler(found)  # type: ignore[no-any-return]
    named = [] if native(triple) else ["-target", gnu(triple)]
    return cross_compiler(_by_zig, options=named)  # type: ignore[no-any-return]


def check_tools(target: tvm.target.Target) -> None:
    """Raises NoLinker or NoCudaCompiler where no library can be made here for the target."""
    linker(target)
    if is_gpu(target):
        check()
        check_driver()


def _by_zig(output: str, objects: list[str], options: list[str]) -> None:
    argv = [sys.executable, "-m", ZIG, "cc", "-shared", "-fPIC", *options, "-o", output, *objects]
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[1:4])} failed: {done.stdout.strip()[-2000:]}")


def warm(target: tvm.target.Target, folder: Path) -> None:
    """Links nothing, in `folder`: the wheel makes what it links with when it is first asked, which takes some 20 s that no
    program should be blamed for. What hinders it the first program will say."""
    source, made = folder / "nothing.c", folder / "nothing.so"
    source.write_text("int nothing;\n")
    with suppress(RuntimeError):
        if (link := linker(target)) is not None:
            link(str(made), [str(source)])
    for path in (source, made):
        path.unlink(missing_ok=True)


def export_library(built: Any, path: Path, target: tvm.target.Target | None = None) -> None:
    """Writes the shared library, whole or not at all; raises NoLinker."""
    fcompile = linker(target)
    partial = path.with_name(f"partial-{path.name}")
    built.export_library(str(partial), **({"fcompile": fcompile} if fcompile else {}))
    partial.replace(path)
