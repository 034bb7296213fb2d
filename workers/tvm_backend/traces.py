"""Between TVM's traces and the engine's knobs (Chameleon 2.2).

The sampling instructions of a MetaSchedule design space are the knobs of a sketch. A configuration becomes a program by
replaying the sketch's trace with its decisions; what TVM made of it is read back from the resulting trace, since
impossible locations and wrong products are silently replaced.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tvm.s_tir.schedule import Instruction, Trace
from tvm.tirx import IntImm

from workers.engine.gpu import Bounds
from workers.engine.space import DIRECT, FUSED, LATE, OUTSIDE, STRUCTURE, STRUCTURES, Knob, Sketch, tilings

TILE, CATEGORY, LOCATION = "SamplePerfectTile", "SampleCategorical", "SampleComputeLocation"
KINDS = {TILE: "tile", CATEGORY: "category", LOCATION: "location"}

# TVM fixes how many pieces run in parallel and how wide a vector may be. Both decide much for operators that have no other
# knob, and something for all: as annotations they become knobs by rebuilding the instruction.
ANNOTATE = "Annotate"
ANNOTATIONS = {"meta_schedule.parallel": "parallel", "meta_schedule.vectorize": "vectorize"}
VECTORS = (16, 32, 64, 128)
PIECES = (1, 16, 256)  # times the cores

SPATIAL = 4  # parts of a tile of what is not summed over

# Where a block may be computed: -2 inlined, -1 at the root, 0.. under that loop of its consumer. More loops than a tiled
# convolution has; what does not exist is read back as something that does.
LOCATIONS = tuple((place,) for place in range(-2, 12))


def sampling(trace: Trace) -> list[Any]:
    """The instructions of a trace that are a choice, in order: one a knob. Tiles choose their vectors themselves.

    A trace that says itself what runs in parallel leaves none: TVM's rules add theirs all the same.
    """
    if any(inst.kind.name == "Parallel" for inst in trace.insts):
        return []
    tiled = any(inst.kind.name == TILE for inst in trace.insts)
    offered = {"parallel"} if tiled else {"parallel", "vectorize"}
    return [inst for inst in trace.insts if inst.kind.name in KINDS or annotation(inst) in offered]


def annotation(inst: Any) -> str:
    """Which annotation knob an instruction is; "" for none."""
    return ANNOTATIONS.get(str(inst.attrs[0]), "") if inst.kind.name == ANNOTATE else ""


@dataclass(frozen=True)
class Vectors:
    """Which numbers of values of an operator's last axis are computed at a time.

    `group`: of a convolution in groups, how many channels are computed from the same inputs. A vector of them is of one group:
    one of two or more, or of one and a part, was 3 to 15 times as slow.
    `lanes`: of sums of products of whole numbers, those of the narrowest instruction. What is left of a vector is computed
    number by number: of 77 programs of SqueezeNet with vectors of fewer the best took 2.9 times what its operator's best did.
    `row`: how long that axis is. Without tiles all axes are one loop; a vector of it that is of two rows and parts is addressed
    number by number: of 96 channels 32 at a time took a quarter to a twelfth of what 64 did.
    """

    group: int | None
    lanes: int
    row: int | None = None

    def take(self, values: int) -> bool:
        return values % self.lanes == 0 and (self.group is None or self.group % values == 0)

    def within_rows(self, offered: Sequence[int]) -> Sequence[int]:
        """Those of which rows are whole numbers, or all where there are none."""
        return [values for values in offered if self.row is not None and self.row % values == 0] or offered


def knobs_of(trace: Trace, cores: int, vectors: Vectors) -> tuple[Knob, ...]:
    """The knobs of a trace. A tile whose extent has no allowed factorisation keeps the trace's own; one of which no vector
    is taken, all of its options."""
    knobs = [_knob(place, inst, trace, cores, vectors) for place, inst in enumerate(sampling(trace))]
    outer = [place for place, knob in enumerate(knobs) if knob.kind == "tile" and len(knob.options[0]) == SPATIAL]
    if outer:
        last = knobs[outer[-1]]
        taken = tuple(option for option in last.options if vectors.take(option[-1]))
        knobs[outer[-1]] = Knob(last.name, last.kind, taken or last.options)
    return tuple(knobs)


@dataclass(frozen=True)
class Family:
    """Traces of one operator with the same knobs: one sketch, where which trace it is becomes a knob of its own.

    MetaSchedule's sketches of a convolution differ only in where the epilogue is fused; one cost model learns from all.
    """

    traces: tuple[Trace, ...]
    sketch: Sketch

    @property
    def branching(self) -> bool:
        """Whether the first knob chooses the trace."""
        return len(self.traces) > 1

    def split(self, choices: tuple[int, ...]) -> tuple[Trace, tuple[int, ...]]:
        """The trace and its own choices."""
        return (self.traces[choices[0]], choices[1:]) if self.branching else (self.traces[0], choices)

    def join(self, which: int, choices: tuple[int, ...]) -> tuple[int, ...]:
        """Inverse of `split`, with the trace's number in the family."""
        return (which, *choices) if self.branching else choices


def families(traces: Sequence[Trace], cores: int, vectors: Vectors, bounds: Bounds | None = None) -> tuple[Family, ...]:
    """The traces by their knobs (see `knobs_of`), in order of first appearance."""
    groups: dict[tuple[Knob, ...], list[Trace]] = {}
    for trace in traces:
        groups.setdefault(knobs_of(trace, cores, vectors), []).append(trace)
    ordered = {knobs: sorted(alike, key=_outermost) for knobs, alike in groups.items()}
    return tuple(Family(tuple(alike), _sketch(knobs, alike, bounds)) for knobs, alike in ordered.items())


def _sketch(knobs: tuple[Knob, ...], alike: Sequence[Trace], bounds: Bounds | None) -> Sketch:
    if len(alike) == 1:
        return Sketch(knobs, bounds)
    structure = Knob(STRUCTURE, "category", tuple((number,) for number in range(len(alike))))
    return Sketch((structure, *knobs), bounds, _structures(alike))


def _structures(alike: Sequence[Trace]) -> tuple[str, ...]:
    """Where traces with tiles, as `_outermost` orders them, write what follows a sum."""
    if len(alike) != 3 or len({_depth(trace) for trace in alike} - {None}) != 2:
        return STRUCTURES
    copied = any(inst.kind.name == "CacheWrite" for trace in alike for inst in trace.insts)
    return (DIRECT if copied else OUTSIDE, FUSED, LATE)


def _outermost(trace: Trace) -> tuple[bool, int]:
    """Orders traces by where they write what follows a sum: after all tiles, then within most of the loops. TVM's order is
    another where nothing follows, and a twin would read every structure of the other as another one's."""
    depth = _depth(trace)
    return (False, 0) if depth is None else (True, -depth)


def _depth(trace: Trace) -> int | None:
    """Around how many of the tiled loops what follows a sum is written; None where it is after them all."""
    loops: list[Any] = []
    for inst in trace.insts:
        if inst.kind.name == "Reorder" and not loops:
            loops = list(inst.inputs)
        if inst.kind.name == "ReverseComputeAt" and any(inst.inputs[1].same_as(loop) for loop in loops):
            return next(place for place, loop in enumerate(loops, 1) if inst.inputs[1].same_as(loop))
    return None


def _knob(place: int, inst: Any, trace: Trace, cores: int, vectors: Vectors) -> Knob:
    kind = inst.kind.name
    if kind == ANNOTATE:
        name, stock = annotation(inst), int(inst.inputs[1])
        if name == "vectorize":
            offered = vectors.within_rows(sorted({stock, *VECTORS}))
        else:
            offered = sorted({stock, 1, *(pieces * cores for pieces in PIECES)})
        return Knob(name, "category", tuple((value,) for value in offered))
    if kind == TILE:
        decision = tuple(int(factor) for factor in trace.get_decision(inst))
        extent = 1
        for factor in decision:
            extent *= factor
        options = tilings(extent, len(decision), int(inst.attrs[1])) or (decision,)
        return Knob(f"tile{place}", "tile", options)
    if kind == CATEGORY:
        return Knob(f"category{place}", "category", tuple((int(value),) for value in inst.attrs[0]))
    return Knob(f"location{place}", "location", LOCATIONS)


def decided(family: Family, choices: tuple[int, ...]) -> Trace:
    """The trace that `choices` name, with their decisions."""
    trace, own = family.split(choices)
    # Those that are no knob were drawn at random.
    decisions = {inst: 0 if inst.kind.name == CATEGORY else found for inst, found in trace.decisions.items()}
    rebuilt: dict[Any, Any] = {}
    for knob, inst, choice in zip(_own(family), sampling(trace), own, strict=True):
        if annotation(inst):
            rebuilt[inst] = Instruction(
                inst.kind, [inst.inputs[0], IntImm("int32", knob.options[choice][0])], inst.attrs, inst.outputs
            )
        elif knob.kind == "tile":
            decisions[inst] = list(knob.options[choice])
        elif knob.kind == "category":
            decisions[inst] = choice
        else:
            decisions[inst] = knob.options[choice][0]
    return Trace([rebuilt.get(inst, inst) for inst in trace.insts], decisions)


def read_back(trace: Trace, family: Family, asked: tuple[int, ...]) -> tuple[int, ...] | None:
    """The choices a trace really holds; None when they are outside the family (then only the identity tells)."""
    instructions, knobs = sampling(trace), _own(family)
    if len(instructions) != len(knobs):
        return None
    choices = []
    for knob, inst in zip(knobs, instructions, strict=True):
        if annotation(inst):
            option: tuple[int, ...] = (_within(knob, int(inst.inputs[1])),)
        elif knob.kind == "category":
            choices.append(int(trace.get_decision(inst)))
            continue
        elif knob.kind == "tile":
            option = tuple(int(factor) for factor in trace.get_decision(inst))
        else:
            option = (int(trace.get_decision(inst)),)
        index = _index(knob).get(option)
        if index is None:
            return None
        choices.append(index)
    return family.join(asked[0] if asked else 0, tuple(choices))


def offered(trace: Trace, family: Family) -> bool:
    """Whether a trace that was read back is the one that its choices make: its vectors are among those that there are."""
    pairs = zip(_own(family), sampling(trace), strict=True)
    return all((int(inst.inputs[1]),) in knob.options for knob, inst in pairs if annotation(inst))


def _within(knob: Knob, value: int) -> int:
    """Of a vector over several rows, as TVM's own search asks for, the widest within one."""
    widths = [option for (option,) in knob.options]
    within = [width for width in widths if width <= value]
    return value if value in widths or knob.name != "vectorize" or not within else max(within)


def _own(family: Family) -> tuple[Knob, ...]:
    """The knobs that stand in the trace itself."""
    return family.sketch.knobs[1:] if family.branching else family.sketch.knobs


@lru_cache(maxsize=65536)
def _index(knob: Knob) -> dict[tuple[int, ...], int]:
    return dict(zip(knob.options, itertools.count()))
