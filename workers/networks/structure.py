"""Checks of a parsed graph: opsets, names, order, local functions. The walk before has bounded everything in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from workers.networks.errors import NetworkError
from workers.networks.limits import Limits
from workers.networks.subgraphs import every, subgraphs

STANDARD = ("", "ai.onnx")
"""Names of ONNX's own operators."""
CONTRIBUTED = "com.microsoft"
"""ONNX Runtime's own."""
DOMAINS = frozenset({*STANDARD, "ai.onnx.ml", CONTRIBUTED})
AGAIN = "check the network with onnx.checker and export it again"


def opset(model: ModelProto) -> int:
    """Version of the standard operators; 1 where a very old file names none."""
    return next((int(o.version) for o in model.opset_import if o.domain in STANDARD), 1)


def check_structure(model: ModelProto, limits: Limits) -> None:
    """NetworkError for an unknown version or domain, a name used twice, a tensor nobody makes or a recursive function."""
    _check_versions(model)
    _check_functions(model, limits)
    if not model.graph.node:
        raise NetworkError("the network", "it has no operators", "upload the exported network, not only its weights")
    if not model.graph.output:
        raise NetworkError("the network", "it has no outputs", AGAIN)
    for value in (*model.graph.input, *model.graph.output):
        if not value.type.HasField("tensor_type"):
            raise NetworkError(
                value.name, "inputs and outputs must be tensors", "export the network with tensor inputs"
            )
    _check_graph(model.graph, ())


def _check_versions(model: ModelProto) -> None:
    if not 1 <= model.ir_version <= onnx.IR_VERSION:
        raise NetworkError(
            f"IR version {model.ir_version}",
            f"known are 1 to {onnx.IR_VERSION}",
            "export with an older or newer ONNX version",
        )
    if not model.HasField("graph"):
        raise NetworkError("the file", "it holds no graph", "upload a network exported to ONNX")
    local = {function.domain for function in model.functions}
    used = _domains([*model.graph.node, *(node for function in model.functions for node in function.node)])
    newest = onnx.defs.onnx_opset_version()
    seen = set()
    for one in model.opset_import:
        # ONNX Runtime's tools declare every domain they know: only one that is used is of interest.
        if one.domain not in DOMAINS | local and one.domain in used:
            raise NetworkError(f"operator domain {one.domain}", "unknown", "use standard ONNX operators only")
        if one.domain in seen:
            raise NetworkError(f"operator domain {one.domain or 'ai.onnx'}", "declared twice", AGAIN)
        seen.add(one.domain)
        if one.domain in STANDARD and not 1 <= one.version <= newest:
            raise NetworkError(
                f"opset {one.version}", f"known are 1 to {newest}", f"export with opset {newest} or older"
            )
    if not model.opset_import and model.ir_version >= 3:
        raise NetworkError("the network", "it does not say which operator set it uses", AGAIN)


def _domains(nodes: Iterable[NodeProto]) -> set[str]:
    """Domains of operators, those of inner graphs included."""
    return {node.domain for node in every(nodes)}


def _check_functions(model: ModelProto, limits: Limits) -> None:
    """Functions may call each other: the number of operators after inlining is counted, not made."""
    if len(model.functions) > limits.functions:
        raise NetworkError(
            f"{len(model.functions)} functions",
            f"more than the {limits.functions} allowed",
            "export without local functions",
        )
    functions = {(f.domain, f.name): f for f in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(nodes: object, depth: int) -> int:
        if depth > limits.depth * 4:
            raise NetworkError(
                "local functions", "they call each other too deeply or in a circle", "export without local functions"
            )
        total = 0
        for node in nodes:  # type: ignore[attr-defined]
            total += 1 + sum(size(graph.node, depth + 1) for graph in subgraphs(node))
            key = (node.domain, node.op_type)
            if key in functions:
                if key not in sizes:
                    sizes[key] = size(functions[key].node, depth + 1)
                total += sizes[key]
        if total > limits.nodes:
            raise NetworkError(
                "local functions",
                f"more than {limits.nodes} operators when written out",
                "export without local functions",
            )
        return total

    if functions:
        for function in model.functions:
            size(function.node, 0)
            _check_function(function)
        size(model.graph.node, 0)


def _check_function(function: FunctionProto) -> None:
    graph = onnx.helper.make_graph(list(function.node), function.name, [], [])
    _check_graph(graph, ({*function.input},))


def _check_graph(graph: GraphProto, outer: tuple[set[str], ...]) -> None:
    inputs = [value.name for value in graph.input]
    weights = [tensor.name for tensor in graph.initializer] + [
        tensor.values.name for tensor in graph.sparse_initializer
    ]
    for names in (inputs, weights):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise NetworkError(twice[0], "this name is used twice", AGAIN)
    known = {*inputs, *weights}
    made: set[str] = set()
    for node in graph.node:
        _check_node(node, known, outer)
        for name in filter(None, node.output):
            if name in made or name in known:
                raise NetworkError(name, "two operators make a tensor of this name", AGAIN)
            made.add(name)
            known.add(name)
    for value in graph.output:
        if value.name not in known and not any(value.name in names for names in outer):
            raise NetworkError(value.name, "no operator makes this output", AGAIN)


def _check_node(node: NodeProto, known: set[str], outer: tuple[set[str], ...]) -> None:
    for name in filter(None, node.input):
        if name not in known and not any(name in names for names in outer):
            raise NetworkError(
                name,
                f"{node.op_type} reads it, and no operator before it makes it (a circle or a missing tensor)",
                AGAIN,
            )
    for graph in subgraphs(node):
        _check_graph(graph, (*outer, known))
