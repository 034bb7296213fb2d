"""What the operator before leaves behind: numbers that were written a moment ago, each part of them by another core."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
from tvm.script import tirx as T

LINE = 64
"""Bytes of a cache line; one number of each is written."""


class Handover:
    """Writes tensors anew as they are, every thread its own part, so that the lines of each part are modified in the
    caches of one core.

    Operators share out their first loop: the first thread writes the first part of a tensor. A program that reads it in
    other parts waits for the other core's caches, which here makes Winograd's products 1.8, depthwise convolutions and
    pools 1.9 times as slow as on tensors that rest where the program itself left them.
    """

    def __init__(self, target: tvm.target.Target, threads: int) -> None:
        self._threads = threads
        self._program = tvm.tirx.build(_program(self._threads), target=target)
        self._entry = self._program["main"]

    def parts(self, tensor: Any, size: int, batch: int = 1) -> Any | None:
        """A view of `tensor`, of `size` bytes, that `__call__` takes; None where it has no line a thread. Of a batch every
        member is shared out."""
        lines = size // (batch * self._threads * LINE)
        return tensor._create_view((batch, self._threads, lines, LINE // 4), "int32") if lines else None

    def __call__(self, parts: Iterable[Any]) -> None:
        for part in parts:
            self._entry(part, 0)


def _program(threads: int) -> tvm.IRModule:
    lines = [
        "@T.prim_func(s_tir=True)",
        "def main(handle: T.handle, nothing: T.int32):",
        "    T.func_attr({'tirx.noalias': True})",
        "    batch, lines = T.int32(), T.int32()",
        f"    held = T.match_buffer(handle, (batch, {threads}, lines, {LINE // 4}), 'int32')",
        f"    for thread in T.parallel({threads}):",
        "        for member, line in T.grid(batch, lines):",
        # Known only when it runs: the compiler must believe that it changes something.
        "            held[member, thread, line, 0] = T.bitwise_xor(held[member, thread, line, 0], nothing)",
    ]
    return tvm.IRModule({"main": tvm.script.from_source("\n".join(lines), {"T": T})})
