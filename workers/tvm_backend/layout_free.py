"""Which constants a program may lay out anew."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import tvm
from tvm import tirx
from tvm_ffi import structural_equal

from workers.tvm_backend.blocks import blocks
from workers.tvm_backend.reads import loads

ATTRIBUTE = "layout_free_buffers"
CONSTANTS = "constants"
"""Of a program that may not lay out all of them anew: places of the arguments that are constants of the network."""


def constants(function: tirx.PrimFunc) -> tuple[int, ...]:
    """Places of the arguments that are constants of the network, of what `settle` returned."""
    attributes = function.attrs
    return tuple(int(place) for place in attributes.get(CONSTANTS, attributes.get(ATTRIBUTE, ())))


def settle(mod: tvm.IRModule) -> tvm.IRModule:
    """Takes back TVM's leave to lay out a constant anew where one program reads it in several ways.

    TVM's RewriteLayout takes the new layout from the first read and drops what that one does not reach: of a GatherND's
    constant indices, read as [0, i] and [1, i], only the first row was left, and the network computed something else.
    """
    for variable, function in mod.functions_items():
        if isinstance(function, tirx.PrimFunc) and ATTRIBUTE in function.attrs:
            places = [int(place) for place in function.attrs[ATTRIBUTE]]
            reads = _Reads(function)
            kept = [p for p in places if reads.alike(function.params[p])]
            if kept != places:
                told = function.with_attr(CONSTANTS, places)
                mod[variable] = told.with_attr(ATTRIBUTE, kept) if kept else told.without_attr(ATTRIBUTE)
    return mod


class _Reads:
    """Where the blocks of a function read its buffers."""

    def __init__(self, function: tirx.PrimFunc) -> None:
        self._found: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)
        for block in blocks(function):
            for load in loads(block.body):
                self._note(load.source, block, load.indices)

    def _note(self, buffer: Any, block: Any, indices: Any) -> None:
        found = self._found[buffer]
        if not any(other.same_as(block) and structural_equal(known, indices) for other, known in found):
            found.append((block, indices))

    def alike(self, buffer: Any) -> bool:
        """Whether one order of the elements serves all reads: there is one, or each goes element by element. What a block
        without a reduction writes of it may be inlined, so that its readers count too, and it has to go by element itself: of
        a transposed convolution's weights, which a block turns round, the first one stood for all."""
        reads = self._found[buffer]
        moved = [block for block, indices in reads if not _by_element(block, indices, buffer.ty.shape)]
        if moved and (len(reads) > 1 or moved[0].init is None):
            return False
        inlined = [block for block, _ in reads if block.init is None]
        return all(self.alike(write.source) for block in inlined for write in block.writes if write.source != buffer)


def _by_element(block: Any, indices: Any, shape: Any) -> bool:
    """And all of them: of a bias whose end only a slice behind does not read, that end stood for the beginning. Along an axis
    of one element, as a bias has, there is no other."""
    extents = {iter_var.var: _size(iter_var.dom.extent) for iter_var in block.iter_vars}
    places = [(index, size) for index, size in zip(indices, map(_size, shape), strict=True) if size != 1]
    different = len({index for index, _ in places}) == len(places)
    return different and all(index in extents and extents[index] == size for index, size in places)


def _size(extent: Any) -> int | None:
    return int(extent) if isinstance(extent, tirx.IntImm) else None
