"""A walk over the bytes of an ONNX file before any parser sees them.

The protobuf wire format is read directly, weights are stepped over: counts, nesting, names and the size of every tensor
are known before a byte is allocated for them. Field numbers are those of onnx.proto3.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np

from workers.networks.errors import NetworkError
from workers.networks.limits import Limits

Buffer = bytes | mmap.mmap
Field = tuple[int, int, int, int]
"""Field number, wire type, then value and 0 (varint) or start and end of the bytes."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
NAME, BLOB = "name", "blob"
BROKEN = "export the network again and check that the upload was complete"

SCHEMA: dict[str, dict[int, str]] = {
    "Model": {2: NAME, 3: NAME, 4: NAME, 6: BLOB, 7: "Graph", 8: "Opset", 14: "Entry", 20: "Training", 25: "Function"},
    "Opset": {1: NAME},
    "Entry": {1: NAME, 2: BLOB},
    "Training": {1: "Graph", 2: "Graph", 3: "Entry", 4: "Entry"},
    "Function": {1: NAME, 4: NAME, 5: NAME, 6: NAME, 7: "Node", 8: BLOB, 9: "Opset",
                 10: NAME, 11: "Attribute", 12: "Value", 13: NAME, 14: "Entry"},
    "Graph": {1: "Node", 2: NAME, 5: "Tensor", 10: BLOB, 11: "Value", 12: "Value", 13: "Value",
              14: "Annotation", 15: "Sparse", 16: "Entry"},
    "Annotation": {1: NAME, 2: "Entry"},
    "Node": {1: NAME, 2: NAME, 3: NAME, 4: NAME, 5: "Attribute", 6: BLOB, 7: NAME, 8: NAME, 9: "Entry"},
    "Attribute": {1: NAME, 4: BLOB, 5: "Tensor", 6: "Graph", 7: BLOB, 8: "Packed", 9: BLOB, 10: "Tensor",
                  11: "Graph", 13: BLOB, 14: "Type", 15: "Type", 21: NAME, 22: "Sparse", 23: "Sparse"},
    "Sparse": {1: "Tensor", 2: "Tensor", 3: "Packed"},
    "Value": {1: NAME, 2: "Type", 3: BLOB, 4: "Entry"},
    "Type": {1: "TensorType", 4: "Holder", 5: "Map", 6: NAME, 8: "TensorType", 9: "Holder"},
    "Holder": {1: "Type"},
    "Map": {2: "Type"},
    "TensorType": {2: "Shape"},
    "Shape": {1: "Dimension"},
    "Dimension": {2: NAME, 3: NAME},
}  # fmt: skip

ONCE: dict[str, frozenset[int]] = {
    "Model": frozenset({7}), "Training": frozenset({1, 2}), "Attribute": frozenset({5, 6, 14, 22}),
    "Sparse": frozenset({1, 2}), "Value": frozenset({2}), "Type": frozenset({1, 4, 5, 8, 9}), "Holder": frozenset({1}),
    "Map": frozenset({2}), "TensorType": frozenset({2}),
}  # fmt: skip
"""Messages that another holds one of. Of two a parser makes one that neither was: dimensions of both, bytes of the last."""

_BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
         17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2}  # fmt: skip
_STRING = 8
_COMPLEX = (14, 15)


@dataclass
class Walk:
    """One walk over one file; `run` raises NetworkError at the first thing that is not as it should be."""

    buffer: Buffer
    limits: Limits
    fields: int = 0
    nodes: int = 0
    tensors: int = 0
    packed: int = 0
    unread: int = 0
    elements: int = 0
    _stack: list[tuple[str, int, int, int]] = field(default_factory=list)

    def run(self) -> None:
        """Visits every message once, iteratively: a deep file cannot exhaust Python's stack."""
        self._stack.append(("Model", 0, len(self.buffer), 0))
        while self._stack:
            kind, start, end, depth = self._stack.pop()
            if kind == "Tensor":
                self._tensor(start, end)
            else:
                self._message(kind, start, end, depth)

    def _message(self, kind: str, start: int, end: int, depth: int) -> None:
        schema, once, met = SCHEMA[kind], ONCE.get(kind, frozenset()), set[int]()
        for number, wire, first, last in self._fields(start, end):
            if wire != BYTES:
                continue
            target = schema.get(number)
            if target == NAME:
                self._name(first, last, kind)
            elif target == "Packed":
                self._pack(last - first)
            elif target is None:
                self.unread += last - first
                _within(self.unread, self.limits.unread_bytes, "bytes in fields that ONNX does not know")
            elif target != BLOB:
                if number in met:
                    raise NetworkError(
                        f"{kind.lower()} at byte {start}", f"it has more than one {target.lower()}", BROKEN
                    )
                met |= once & {number}
                self._count(target)
                below = depth + (target == "Graph")
                _within(below, self.limits.depth, "graphs inside each other")
                self._stack.append((target, first, last, below))

    def _count(self, kind: str) -> None:
        # When it is found, not when it is visited: the list of what is left to visit stays short.
        if kind == "Node":
            self.nodes += 1
            _within(self.nodes, self.limits.nodes, "operators")
        elif kind in ("Value", "Tensor"):
            self.tensors += 1
            _within(self.tensors, self.limits.tensors, "tensors")

    def _fields(self, start: int, end: int) -> Iterator[Field]:
        buffer, position = self.buffer, start
        while position < end:
            self.fields += 1
            if self.fields > self.limits.fields:
                _within(self.fields, self.limits.fields, "protobuf fields")
            tag, position = _varint(buffer, position, end)
            number, wire = tag >> 3, tag & 7
            if number == 0 or wire in (3, 4, 6, 7):
                raise NetworkError(
                    f"byte {position}", "this is not an ONNX file (no protobuf field starts here)", BROKEN
                )
            if wire == VARINT:
                value, position = _varint(buffer, position, end)
                yield number, wire, value, 0
                continue
            if wire == BYTES:
                length, position = _varint(buffer, position, end)
            else:
                length = 8 if wire == FIXED64 else 4
            if length > end - position:
                raise NetworkError(
                    f"byte {position}",
                    f"the file is cut off or damaged: {length} bytes are announced, {end - position} are left",
                    BROKEN,
                )
            yield number, wire, position, position + length
            position += length

    def _name(self, start: int, end: int, kind: str) -> None:
        where = f"a name in {kind.lower()} at byte {start}"
        if end - start > self.limits.name_length:
            raise NetworkError(
                where, f"it has {end - start} bytes, {self.limits.name_length} are allowed", "shorten it"
            )
        try:
            text = self.buffer[start:end].decode("utf-8")
        except UnicodeDecodeError:
            raise NetworkError(where, "it is not valid UTF-8", BROKEN) from None
        if not text.isprintable():
            raise NetworkError(where, f"{text!r} contains control characters", "rename it and export the network again")

    def _pack(self, length: int) -> None:
        self.packed += length
        _within(self.packed, self.limits.packed_bytes, "bytes of variable-length integers")

    def _tensor(self, start: int, end: int) -> None:
        """Declared shape against the bytes that are there: 71 bytes may claim 4 TiB."""
        name, dims, kind, raw, values = f"tensor at byte {start}", list[int](), 0, -1, 0
        for number, wire, first, last in self._fields(start, end):
            if number == 1:
                dims += [first] if wire == VARINT else self._varints(first, last)
                _within(len(dims), self.limits.rank, f"dimensions of {name}")
            elif number == 2 and wire == VARINT:
                kind = first
            elif number == 8 and wire == BYTES:
                self._name(first, last, "tensor")
                name = self.buffer[first:last].decode("utf-8") or name
            elif number == 9 and wire == BYTES:
                raw = last - first
            elif number == 13 or (number == 14 and first == 1):
                raise NetworkError(
                    name,
                    "its weights are in another file",
                    "save the network as one file: onnx.save(onnx.load('there.onnx'), 'one.onnx')",
                )
            elif number == 3:
                raise NetworkError(name, "it is stored in segments", "save the network with whole tensors")
            else:
                values += self._values(number, wire, first, last)
        self._measure(name, dims, kind, raw, values)

    def _values(self, number: int, wire: int, first: int, last: int) -> int:
        """Number of elements in a typed data field (float_data and its like)."""
        if number not in (4, 5, 6, 7, 10, 11):
            return 0
        if wire != BYTES or number == 6:
            return 1
        if number in (4, 10):
            return (last - first) // (4 if number == 4 else 8)
        return self._count_varints(first, last)

    def _count_varints(self, first: int, last: int) -> int:
        self._pack(last - first)
        # A varint ends at its only byte below 128.
        return int(np.count_nonzero(np.frombuffer(self.buffer[first:last], np.uint8) < 128))

    def _varints(self, first: int, last: int) -> list[int]:
        _within(last - first, 10 * self.limits.rank, "bytes of dimensions of a tensor")
        found = []
        while first < last:
            value, first = _varint(self.buffer, first, last)
            found.append(value)
        return found

    def _measure(self, name: str, dims: list[int], kind: int, raw: int, values: int) -> None:
        if any(d >= 2**63 for d in dims):
            raise NetworkError(name, "it has a negative dimension", BROKEN)
        count = prod(dims)
        _within(count, self.limits.tensor_elements, f"elements of {name}")
        self.elements += count
        _within(self.elements, self.limits.weight_elements, "elements of all weights")
        if kind == _STRING:
            expected, found = count, values
        elif kind not in _BITS:
            raise NetworkError(
                name, f"element type {kind} is unknown", "export the network with a current ONNX version"
            )
        elif raw >= 0:
            expected, found = -(-count * _BITS[kind] // 8), raw
        else:
            expected, found = count * (2 if kind in _COMPLEX else 1), values
            if _BITS[kind] < 8:
                expected = -(-count * _BITS[kind] // 8)
        if expected != found:
            unit = "bytes" if raw >= 0 else "values"
            raise NetworkError(name, f"its shape {dims} needs {expected} {unit}, the file has {found}", BROKEN)


def _varint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    result = shift = 0
    while position < end:
        byte = buffer[position]
        position += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result & (2**64 - 1), position
        shift += 7
        if shift >= 70:
            raise NetworkError(f"byte {position}", "this is not an ONNX file (a number has no end)", BROKEN)
    raise NetworkError(f"byte {position}", "the file is cut off or damaged: it ends within a number", BROKEN)


def _within(count: int, limit: int, what: str) -> None:
    if count > limit:
        raise NetworkError(f"{count} {what}", f"more than the {limit} allowed", "use a smaller network")
