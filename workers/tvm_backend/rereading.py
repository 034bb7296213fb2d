"""How soon a network reads a constant again: a recurrence its weights in each step, in whose caches they lie."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import median_low
from typing import Any

import tvm
from tvm import relax

from workers.tvm_backend.layout_free import constants
from workers.tvm_backend.mutation import is_call, results, type_bytes

READ_AGAIN = "read_again"
"""Of a program, for each of its constants: bytes that are touched from one reading to the next, a power of two; 0 where the
network reads most of them once."""
SOON = 1 / 4
"""Of what an inference touches; later is as good as once."""


def marked(mod: tvm.IRModule) -> tvm.IRModule:
    """`mod` with what is read again soon told by its programs."""
    found, touched = _distances(mod)
    for variable, function in mod.functions_items():
        places = constants(function) if variable in found else ()
        again = [_usual(found[variable][place], touched * SOON) for place in places]
        if any(again):
            mod[variable] = function.with_attr(READ_AGAIN, again)
    return mod


def _usual(distances: list[float], most: float) -> int:
    """Where half of them are known, and not too long: the power of two below."""
    usual = median_low(distances)
    return 1 << int(usual).bit_length() - 1 if 0 < usual <= most else 0


def _distances(mod: tvm.IRModule) -> tuple[dict[Any, dict[int, list[float]]], int]:
    """By program and the place of a constant, bytes from the reading before to each; and of the whole network. What is computed
    counts where it is written: it is read where it lies."""
    found: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    last: dict[Any, int] = {}
    touched = 0
    for function in mod.functions.values():
        values = relax.analysis.get_var2val(function) if isinstance(function, relax.Function) else {}
        for call in filter(calls_program, values.values()):
            program, read = call.args[0], [values.get(one, one) for one in call.args[1]]
            held = {place: read[place] for place in constants(mod[program])}
            for place, constant in held.items():
                found[program][place].append(touched - last.get(constant, -math.inf))
            last.update(dict.fromkeys(held.values(), touched))
            made = (call.args[1][place] for place in held)
            touched += sum(map(type_bytes, (*(one.ty for one in made), *results(call))))
    return found, touched


def calls_program(call: Any) -> bool:
    """Whether an expression of a network is an operator of it."""
    return is_call(call, "relax.call_tir") and isinstance(call.args[1], relax.Tuple)
