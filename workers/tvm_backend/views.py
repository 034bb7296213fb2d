"""Tensors as a block sees them by its own axes, while TVM's rules look at it.

What follows a product of rows reads and writes places of a picture, in which a row is no axis. The rules do not see there that
it goes by the product's elements, and send all sums through memory: 12,544 rows of 96 sums of 16 took 1.2 ms, and take 0.4
where what follows has each tile's while they lie in registers.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule

from workers.tvm_backend.blocks import blocks

VIEW = "view"
"""Annotation of a block that copies what another wrote to where it belongs: inlined into it when the rules are done."""
LEFT_ALONE = {"meta_schedule.inline_rule": "disable", "meta_schedule.tiling_structure": ""}
"""Annotations for the rules: neither to be inlined, nor to be computed elsewhere."""


def by_axes(schedule: Schedule, name: str) -> None:
    """Has the block `name`, which writes one tensor, write by its axes in one of their extents that is copied from there, and
    hides from the rules what it reads otherwise: of arguments, as no order depends on those; else it stays what it is."""
    block, root = schedule.get_sblock(name), schedule.get_sblock("root")
    found, computed = schedule.get(block), schedule.get(root).alloc_buffers
    (write,), axes, otherwise = found.writes, _axes(found), read_otherwise(found)
    if any(found.reads[place].source.same_as(one) for place in otherwise for one in computed):
        return
    if otherwise:
        schedule.unsafe_hide_buffer_access(block, "read", otherwise)
    if not _along(write, axes):
        as_they_are = tirx.IndexMap.from_func(lambda *axes: axes, ndim=len(axes))
        view = schedule.reindex_cache_write(block, 0, "global", as_they_are)
        schedule.annotate(view, VIEW, name)
        for one in (block, view):
            for key, value in LEFT_ALONE.items():
                schedule.annotate(one, key, value)


def read_otherwise(block: Any) -> list[int]:
    """Places, among all that a block reads, of what it does not read by its axes."""
    axes = _axes(block)
    return [place for place, read in enumerate(block.reads) if not _along(read, axes)]


def inlined(schedule: Schedule) -> Schedule:
    """With nothing left of the views."""
    for block in blocks(schedule.mod["main"]):
        if VIEW in block.annotations:
            schedule.reverse_compute_inline(schedule.get_sblock(block.name_hint))
    return schedule


def _axes(block: Any) -> list[Any]:
    return [axis.var for axis in block.iter_vars]


def _along(region: Any, axes: list[Any]) -> bool:
    """Whether each place in it is one of the `axes`, or always the same."""
    return all(isinstance(one.min, tirx.IntImm) or any(map(one.min.same_as, axes)) for one in region.region)
