"""How large a network may be before it is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Limits:
    """Bounds that a file has to keep; elements are counted in exact integers, never in machine words.

    `fields` bounds the protobuf fields and `packed_bytes` the variable-length integers: both grow when parsed (a
    two-byte message becomes some two hundred bytes), the weights themselves do not. `tensor_elements` bounds one
    tensor, declared or inferred, `weight_elements` all weights and `total_elements` all tensors that a network ever
    makes, which are not those of a moment: four layers of a Segment Anything make 2**32 of scores alone. 2**30 elements
    of float32 are 4 GiB. `ports` bounds inputs and outputs together, `open_sizes` what a form asks for: the cached keys
    and values of a language model, whose batch and length are open, are some two hundred.
    """

    file_bytes: int = 2_000_000_000
    fields: int = 2_000_000
    packed_bytes: int = 256 * 2**20
    unread_bytes: int = 16 * 2**20
    nodes: int = 50_000
    tensors: int = 200_000
    depth: int = 8
    functions: int = 1_000
    ports: int = 256
    open_sizes: int = 512
    rank: int = 16
    name_length: int = 1_024
    tensor_elements: int = 2**30
    weight_elements: int = 2**32
    total_elements: int = 2**36


DEFAULT = Limits()
WRITTEN = replace(DEFAULT, total_elements=16 * DEFAULT.total_elements)
"""Of a network that was checked, with what is written in place of its operators: up to seven tensors for a quantisation."""
