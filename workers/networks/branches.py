"""Branches that are known beforehand: PyTorch exports x.squeeze(1) with an If that asks for a size; sizes are fixed here."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, helper

from workers.networks.errors import NetworkError
from workers.networks.folding import fold_constants
from workers.networks.graph import Weights, attribute, called, constants_of, rewrite, told
from workers.networks.names import respell
from workers.networks.nearest import is_nearest, takes_others
from workers.networks.rewriting import half_a_pixel_off
from workers.networks.scattering import is_of_a_part
from workers.networks.shape import TensorShape
from workers.networks.shapes import set_output_shapes, tensor_shapes
from workers.networks.structure import CONTRIBUTED, STANDARD, opset
from workers.networks.subgraphs import every, nested

_OF_ANY_SIZE = frozenset({"If", "Identity", "Reshape", "Shape", "Size"})
"""Operators that TVM has programs for where nobody knows the size of what they read."""


def chosen_branches(model: ModelProto) -> str | None:
    """The operators of the branch that is taken stand in an If's place, where constants decide. Raises NetworkError where
    values do and the sizes of what is computed with depend on them."""
    graph, opened = model.graph, 0
    _spell_apart(graph)
    while any(_is_if(node) for node in graph.node):
        fold_constants(model)
        weights = Weights(graph)
        found = rewrite(graph, lambda node: _opened(node, weights, graph))  # noqa: B023 - called at once
        if not found:
            shapes = tensor_shapes(model)
            _refuse_sizes(model, shapes)
            _refuse_unwritten(model, shapes)
            break
        opened += found
    if opened:
        set_output_shapes(model)
    return told(
        opened,
        "If was replaced by the branch that is always taken",
        "Ifs were replaced by the branches that are always taken",
    )


def _is_if(node: NodeProto) -> bool:
    return bool(node.op_type == "If" and node.domain in STANDARD)


def _opened(node: NodeProto, weights: Weights, graph: GraphProto) -> list[NodeProto]:
    """A branch's operators, its constants being put into `graph`; none where values decide."""
    if not _is_if(node) or node.input[0] not in weights:
        return []
    branch = attribute(node, "then_branch" if weights.get(node.input[0]).any() else "else_branch")
    graph.initializer.extend(branch.initializer)
    handed = [
        helper.make_node("Identity", [made.name], [result])
        for made, result in zip(branch.output, node.output, strict=True)
        if result
    ]
    return [*branch.node, *handed]


def _spell_apart(graph: GraphProto) -> None:
    """What two branches call alike gets two names, as in the main graph."""
    for inner in list(nested(graph)):
        for node in filter(_is_if, inner.node):
            for one in node.attribute:
                respell(one.g, {name: f"{node.output[0]}__{one.name}_{name}" for name in _own(one.g)})


def _own(branch: GraphProto) -> set[str]:
    """What is named in it, not what it reads from outside: another branch may have the same names."""
    names: set[str] = set()
    for graph in nested(branch):
        names.update(value.name for value in graph.input)
        names.update(tensor.name for tensor in graph.initializer)
        names.update(name for node in graph.node for name in node.output if name)
    return names


def _refuse_sizes(model: ModelProto, shapes: Mapping[str, TensorShape]) -> None:
    computed = {name for g in nested(model.graph) for n in g.node if n.op_type not in _OF_ANY_SIZE for name in n.input}
    for node in model.graph.node:
        if _is_if(node) and not computed.isdisjoint(_sized_by_values(node, shapes)):
            reason = "its branches make tensors of different sizes, and which of them is taken depends on values"
            instead = "export the network with one of them, or with branches of one size"
            raise NetworkError(called(node), reason, instead)


def _refuse_unwritten(model: ModelProto, shapes: Mapping[str, TensorShape]) -> None:
    """Some operators TVM computes as ONNX does once they are written otherwise, which they are outside branches alone."""
    version, constants = opset(model), constants_of(nested(model.graph))  # no two have one name

    def is_otherwise(node: NodeProto) -> bool:
        other = is_nearest(node) and takes_others(node, shapes, constants)
        return other or _is_written_otherwise(node, version) or is_of_a_part(node, shapes)

    for node in filter(_is_if, model.graph.node):
        otherwise = filter(is_otherwise, every([node]))
        if found := sorted({one.op_type for one in otherwise}):
            reason = f"one of its branches holds {found[0]}, and which of them is taken depends on values"
            raise NetworkError(called(node), reason, f"export the network with {found[0]} outside of it")


def _is_written_otherwise(node: NodeProto, version: int) -> bool:
    if node.op_type == "IsInf":
        return not all(attribute(node, f"detect_{sign}", 1) for sign in ("negative", "positive"))
    if node.op_type == "RoiAlign":
        # The largest of samples is refused anywhere.
        return attribute(node, "mode", b"avg") != b"max" and half_a_pixel_off(node, version)
    if node.op_type == "Resize":
        stretched = attribute(node, "keep_aspect_ratio_policy", b"stretch") == b"stretch"
        return bool(attribute(node, "antialias", 0)) or not stretched
    if node.op_type == "DequantizeLinear":
        return node.domain == CONTRIBUTED and bool(attribute(node, "block_size", 0))
    if node.op_type == "LpPool":
        return bool(attribute(node, "ceil_mode", 0))
    return node.op_type in ("LpNormalization", "MeanVarianceNormalization")


def _sized_by_values(node: NodeProto, shapes: Mapping[str, TensorShape]) -> list[str]:
    """Outputs of which the branches make others."""
    branches = (attribute(node, f"{word}_branch").output for word in ("then", "else"))
    pairs = ([shapes.get(value.name) for value in values] for values in zip(*branches, strict=True))
    return [
        result
        for result, (one, other) in zip(node.output, pairs, strict=True)
        if one and other and None not in (one.static, other.static) and one.static != other.static
    ]
