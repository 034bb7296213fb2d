"""What one inference touches: so much lies between two readings of a weight, and between two uses of one place.

A weight counts once, however often it is read. What is computed lies in room that is used over and over, as soon as nobody
reads any more what was there: a MobileNetV2 computes in 7 MB. Counted each where it is written and again where it is read, an
inference of SqueezeNet seemed to touch 58 MB in place of 16, and weights were timed from memory where a last cache has them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import tvm
from tvm import relax

from workers.tvm_backend.arguments import Footprint
from workers.tvm_backend.layout_free import constants
from workers.tvm_backend.mutation import results, type_bytes
from workers.tvm_backend.reads import looked_up
from workers.tvm_backend.rereading import calls_program


def footprint(mod: tvm.IRModule) -> Footprint:
    """Of a network's module, whose operators are programs."""
    held: dict[Any, int] = {}
    room = 0
    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            values = relax.analysis.get_var2val(function)
            room += sum(type_bytes(variable.ty) for variable in function.params) + _most_at_once(values, mod)
            for call in filter(calls_program, values.values()):
                _hold(held, call, mod[call.args[0]], values)
    return Footprint(sum(held.values()), room)


def _hold(held: dict[Any, int], call: relax.Call, program: tvm.tirx.PrimFunc, values: Any) -> None:
    """The constants that a program reads."""
    tables, made = looked_up(program), _made(call)
    for place in constants(program):
        size = type_bytes(call.args[1][place].ty)
        constant = values.get(call.args[1][place], call.args[1][place])
        held[constant] = max(held.get(constant, 0), min(size, made) if place in tables else size)


def _most_at_once(values: Any, mod: tvm.IRModule) -> int:
    """Bytes of all results that somebody still reads, at most."""
    stands_for: dict[Any, set[Any]] = {}
    last: dict[Any, int] = {}
    for number, (variable, value) in enumerate(values.items()):
        read = {made for one in relax.analysis.free_vars(value) for made in stands_for.get(one, ())}
        # A tuple, a part of one and another shape of a tensor are that tensor.
        made = calls_program(value) and not relax.analysis.has_reshape_pattern(mod[value.args[0]])
        stands_for[variable] = {variable} if made else read
        last.update(dict.fromkeys(read | stands_for[variable], number))
    ending = defaultdict[int, list[Any]](list)
    for variable, number in last.items():
        ending[number].append(variable)
    live = most = 0
    for number, variable in enumerate(values):
        live += _made(values[variable]) if variable in last else 0
        most = max(most, live)
        live -= sum(_made(values[one]) for one in ending[number])
    return most


def _made(call: relax.Call) -> int:
    """Bytes of all its results."""
    return sum(map(type_bytes, results(call)))
