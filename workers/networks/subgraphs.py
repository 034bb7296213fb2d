"""Walking into control flow: graphs inside the operators of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, NodeProto


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in the attributes of a control-flow operator."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH or attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def every(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The operators and those of the graphs inside them, at any depth."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            yield node
            pending += [graph.node for graph in subgraphs(node)]


def nested(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and those inside its operators, at any depth."""
    pending = [graph]
    while pending:
        found = pending.pop()
        yield found
        for node in found.node:
            pending += subgraphs(node)
