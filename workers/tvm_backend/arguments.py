"""Tensors to time programs with, in the state of the caches that the network has."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray

from workers.tvm_backend.handover import Handover
from workers.tvm_backend.hardware import last_caches
from workers.tvm_backend.mutation import is_float, tensor_bytes

MOVED = 1 << 16
"""Bytes; smaller weights are loaded in microseconds wherever they are."""
MOST = 1 << 27
"""Bytes of storage that weights move through, at most where it is twice what all caches hold."""
LARGE = 1 << 20
"""Bytes of an output. Smaller ones are written where something was read a moment ago; the room of larger ones, of a network's
first layers, was last used an inference ago, and the caches have forgotten it."""
MOST_OUTPUTS = 1 << 26
"""Bytes of storage that they move through."""
ALIGNED = 64
SWING = 0.1
"""Weights are between -SWING and SWING, all else between 0 and 1: sums of some hundred products are of the size of one, as
in a network. Time may depend on values: erf is a call of the C library's, which answers early where they are large, and
with sums of hundreds a transformer's GELUs looked a quarter faster than they are."""
SMALLEST_TYPE = 127
"""What a signed integer of eight bits holds."""
DRAWN = 1 << 20
"""Values; larger tensors repeat them."""

RANDOM = frozenset({"float32", "uint32", "int16", "uint8"})
"""Types of which nothing is an index, so that any bits will do: numbers, groups of weights, what is multiplied with those."""
MOVING = RANDOM | {"float64", "int8"}
"""Types of what moves. The bits of two small numbers are one of float64 that is small, too."""

Tensors = list[Any]


class Footprint(NamedTuple):
    """Bytes of the `constants` that an inference reads, of a table as much as is looked up; and of the `room` for what it is
    given and computes."""

    constants: int = 0
    room: int = 0


class AtRest:
    """In place of a `Handover` where all that computes shares one cache: what was written a moment ago lies there."""

    def parts(self, tensor: Any, size: int, batch: int = 1) -> None:
        return None


def most_held(footprint: Footprint, largest: int) -> int:
    """Bytes of arguments that a process comes to hold; `largest`: those of one operator, which may be too large to move."""
    return _moved_through(footprint) + _written_to(footprint) + largest


def _moved_through(footprint: Footprint) -> int:
    return min(sum(footprint), max(MOST, 2 * last_caches()))


def _written_to(footprint: Footprint) -> int:
    return min(2 * footprint.room, MOST_OUTPUTS)  # the largest output is more than half of the room


@dataclass(frozen=True)
class Given:
    """Arguments call after call, and views of those that the caches have, as `Handover` takes them: what is written first is
    read last."""

    calls: Iterator[Tensors]
    handed: tuple[Any, ...]


class Arguments:
    """Random tensors for one operator's programs after another's.

    In a network an operator's input was written a moment ago, by the cores that the operator before shared it out to, but
    its weights were last read one inference ago: since then all else went through the caches. So weights move through a
    storage as large as what an inference touches, a step with every call, and large outputs through one of twice the room
    for what it computes. Timed with resting weights,
    ResNet-18's operators sum up to 13 % less than the network takes; with inputs at rest, SqueezeNet's to 25 % less; with large
    outputs at rest, MobileNet's to 11 % less. Weights that are read again sooner, as a recurrence's are in each of its steps,
    move through no more than what is touched until then, or rest: a tagger's operators summed up to 1.5 of what it takes.
    """

    def __init__(self, footprint: Footprint, handover: Handover | AtRest, device: Any = None) -> None:
        """`footprint`: what one inference touches; nothing moves where that is nothing. Of this machine's memory, unless
        another `device` is given."""
        self._handover = handover
        self._device = device or tvm.cpu()
        self._fill = tvm.get_global_func("tvm.contrib.random.random_fill_for_measure")
        random = np.random.default_rng(0)
        self._values = random.random(DRAWN, dtype=np.float32)
        self._weights = SWING * (2 * random.random(DRAWN, dtype=np.float32) - 1)
        # Now: their pages cost up to a second, in which the first program with weights would hold the machine.
        self._read = _Ring(self._weights, _moved_through(footprint))
        self._written = _Ring(self._values, _written_to(footprint))  # apart: as weights, sums would make larger ones
        self._whole = _Ring(self._weights, 0)
        self._resting: tuple[int, int, dict[int, Any]] | None = None

    def of(
        self,
        operator: int,
        shapes: Sequence[tuple[tuple[int, ...], str]],
        constants: Sequence[tuple[int, int]],
        batch: int = 1,
        divisors: Collection[int] = (),
        below: int = 1,
    ) -> Given:
        """`constants` are as `Workload.constants` has them; of a `batch` every member is shared out among the cores. All
        numbers of `divisors` are 1, whole ones of others `below` that."""
        again = dict(constants)
        moving = {
            place: (ring, shapes[place], again.get(place) or ring.size)
            for place in (*again, len(shapes) - 1)
            if place not in divisors and (ring := self._ring(*shapes[place], again.get(place)))
        }
        rest = [(p, *shape, p in again) for p, shape in enumerate(shapes) if p not in moving]
        resting = self._rest(operator, rest, below, divisors)
        parts = [
            self._handover.parts(tensor, tensor_bytes(*shapes[place]), batch if len(shapes[place][0]) == 3 else 1)
            for place, tensor in sorted(resting.items(), reverse=True)
            if place not in again
        ]
        handed = tuple(part for part in parts if part is not None)
        if not moving:
            return Given(repeat([resting[place] for place in range(len(shapes))]), handed)
        return Given(self._calls(resting, moving), handed)

    def _ring(self, shape: tuple[int, ...], dtype: str, again: int | None) -> _Ring | None:
        """What a tensor moves through; None where it rests. Of a weight it is known how much is touched until it is read
        `again`."""
        ring, least = (self._written, LARGE) if again is None else (self._read, MOVED)
        size = tensor_bytes(shape, dtype)
        if dtype not in MOVING or size < least or (again and size > again // 2):
            return None
        if size > ring.size // 2 and again is not None and ring.size:
            # A classifier's hundreds of megabytes, which no cache keeps: to fill them anew would take longer than to time them.
            if size > self._whole.size:
                self._whole = _Ring(self._weights, size)
            return self._whole
        return ring if size <= ring.size // 2 else None

    def _calls(
        self, resting: dict[int, Any], moving: dict[int, tuple[_Ring, tuple[tuple[int, ...], str], int]]
    ) -> Iterator[Tensors]:
        while True:
            tensors = resting | {place: ring.next(*shape, within) for place, (ring, shape, within) in moving.items()}
            yield [tensors[place] for place in sorted(tensors)]

    def _rest(
        self,
        operator: int,
        wanted: Sequence[tuple[int, tuple[int, ...], str, bool]],
        below: int,
        divisors: Collection[int],
    ) -> dict[int, Any]:
        """Views of storage that is kept while the operator stays the same; never two operators' at once.

        Packing its weights changes shapes from program to program, and may pad them.
        """
        if self._resting is None or self._resting[:2] != (operator, below):
            self._resting = (operator, below, {})
        kept = self._resting[2]
        for place, shape, dtype, weight in wanted:
            if place not in kept or math.prod(kept[place].shape) < math.prod(shape):
                divides = place in divisors
                kept[place] = self._ones(shape, dtype) if divides else self._random(shape, dtype, weight, below)
        return {place: kept[place]._create_view(shape) for place, shape, *_ in wanted}

    def _ones(self, shape: tuple[int, ...], dtype: str) -> Any:
        return tvm.runtime.tensor(np.ones(shape, dtype), self._device)

    def _random(self, shape: tuple[int, ...], dtype: str, weight: bool, below: int) -> Any:
        if dtype in RANDOM and not is_float(dtype):
            bits = np.random.default_rng(0).bytes(tensor_bytes(shape, dtype))
            return tvm.runtime.tensor(np.frombuffer(bits, dtype).reshape(shape), self._device)
        if not is_float(dtype):
            return tvm.runtime.tensor(whole_numbers(np.random.default_rng(0), shape, dtype, below), self._device)
        if dtype in ("float16", "float32", "float64"):
            drawn = np.resize(self._weights if weight else self._values, shape)
            return tvm.runtime.tensor(drawn.astype(dtype, copy=False), self._device)
        tensor = tvm.runtime.empty(shape, dtype=dtype, device=self._device)
        self._fill(tensor)
        return tensor


def whole_numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: str, below: int) -> NDArray[Any]:
    """From 0 to under `below`, or what a small type holds."""
    most = min(below, SMALLEST_TYPE) if tvm.DataType(dtype).bits <= 8 else below
    return np.asarray(random.integers(0, most, shape)).astype(dtype)


class _Ring:
    """Storage of `size` bytes, of `values` over and over, that tensors move through."""

    def __init__(self, values: NDArray[np.float32], size: int) -> None:
        self.size = size
        self._storage = _aligned(values, size)
        self._cursors: dict[int, int] = {}

    def next(self, shape: tuple[int, ...], dtype: str, within: int) -> Any:
        """A tensor of its own: of a view with an offset, compiled programs would read the storage's beginning. It lies `within`
        the first so many bytes."""
        size = tensor_bytes(shape, dtype)
        begin = self._cursors.get(within, 0)
        if begin + size > min(self.size, within):
            begin = 0
        self._cursors[within] = begin + -(-size // ALIGNED) * ALIGNED
        return tvm_ffi.from_dlpack(self._storage.view(np.uint8)[begin : begin + size].view(dtype).reshape(shape))


def _aligned(values: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """`size` bytes of `values` over and over that begin where a vector may."""
    numbers = -(-size // 4)
    room = np.empty(numbers + ALIGNED // 4, np.float32)
    begin = -room.ctypes.data % ALIGNED // 4
    storage = room[begin : begin + numbers]
    for at in range(0, len(storage), len(values)):
        part = storage[at : at + len(values)]
        part[:] = values[: len(part)]
    return storage
