"""Operators in the order that ONNX asks for: who makes a tensor stands before who reads it."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush

from onnx import GraphProto

from workers.networks.graph import read_by, replace_nodes


def put_in_order(graph: GraphProto) -> None:
    """Sorts the main graph, by the place of old wherever there is a choice: ONNX Runtime takes such a network, where only inner
    graphs are in order, and its own converter to half precision writes some. Operators that wait for each other stay behind the
    others, for a check to refuse."""
    makers = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    needs = [{makers[name] for name in read_by(node) if name in makers} for node in graph.node]
    if all(max(places, default=-1) < place for place, places in enumerate(needs)):
        return
    readers = defaultdict(list)
    for place, places in enumerate(needs):
        for maker in places:
            readers[maker].append(place)
    waiting = [len(places) for places in needs]
    ready, order = [place for place, count in enumerate(waiting) if not count], list[int]()
    while ready:
        order.append(heappop(ready))
        for reader in readers[order[-1]]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, reader)
    order += [place for place, count in enumerate(waiting) if count]
    replace_nodes(graph, [graph.node[place] for place in order])
