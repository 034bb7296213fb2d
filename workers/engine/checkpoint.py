"""What generators, arrays and candidates look like in a JSON state."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workers.engine.ports import KNOWN, Candidate
from workers.engine.space import Choices, Configuration


def pack_generator(rng: np.random.Generator) -> dict[str, Any]:
    """State of a PCG64 generator. Its 128-bit integers become hexadecimal text: not every JSON reader keeps them
    exact."""
    state = rng.bit_generator.state
    words = {name: format(value, "x") for name, value in state["state"].items()}
    return {"kind": state["bit_generator"], "words": words, "half": [state["has_uint32"], state["uinteger"]]}


def unpack_generator(rng: np.random.Generator, packed: dict[str, Any]) -> None:
    """Puts `rng` into the state that `pack_generator` saw; ValueError for another kind of generator."""
    if packed["kind"] != rng.bit_generator.state["bit_generator"]:
        raise ValueError(f"the state is of a {packed['kind']} generator; make this one the same kind")
    half, word = packed["half"]
    words = {name: int(text, 16) for name, text in packed["words"].items()}
    rng.bit_generator.state = {"bit_generator": packed["kind"], "state": words, "has_uint32": half, "uinteger": word}


def pack_candidates(candidates: Iterable[Candidate]) -> list[list[Any]]:
    """Candidates of one operator that nobody told the outcome of."""
    return [[c.configuration.sketch, list(c.configuration.choices), c.origin, c.round] for c in candidates]


def unpack_candidates(operator: int, packed: Iterable[Sequence[Any]]) -> list[Candidate]:
    """Inverse of `pack_candidates`."""
    return [  # an earlier version says apart whether it is known
        Candidate(operator, Configuration(sketch, tuple(choices)), KNOWN if any(known) else origin, at)
        for sketch, choices, origin, at, *known in packed
    ]


def pack_choices(choices: Choices) -> dict[str, Any]:
    """Compressed choices: 128 chains of 12 knobs take about 2 kB."""
    raw = zlib.compress(np.ascontiguousarray(choices, dtype="<i4").tobytes())
    return {"shape": list(choices.shape), "rows": base64.b64encode(raw).decode("ascii")}


def unpack_choices(packed: dict[str, Any]) -> Choices:
    """Inverse of `pack_choices`."""
    raw = zlib.decompress(base64.b64decode(packed["rows"]))
    return np.frombuffer(raw, dtype="<i4").reshape(packed["shape"]).astype(np.int32)
