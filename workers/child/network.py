"""The whole network for a library: imported once, and what was found for its operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workers.child.meaning import meaning
from workers.child.peers import ArtifactFailed
from workers.messages.spec import RunSpec
from workers.networks.clean import cleaned
from workers.networks.inspect import Inspection, inspect_model

if TYPE_CHECKING:
    import tvm

    from workers.tvm_backend.importer import Imported
    from workers.tvm_backend.library import Network, Timed

PATIENCE = 3600.0
"""s without an event until a compilation counts as hung; a large network is built several times over between two."""


def import_cleaned(spec: RunSpec, target: tvm.target.Target, layout: str) -> tuple[Imported, Inspection]:
    """The network in that layout as TVM's functions, and what it is once it is cleaned: for a large one that takes seconds and
    gigabytes, and is done once. After `runtime.load`."""
    from workers.tvm_backend.importer import import_network

    model = cleaned(spec.network, spec.inputs)
    return import_network(model, spec.inputs, target, layout, spec.balance), inspect_model(model)


def configurations(best: Mapping[str, Any], network: Network, spec: RunSpec) -> dict[int, Timed]:
    """By index, of `best` as an order or metadata.json has them; raises ArtifactFailed where the network's operators, or what
    their choices mean, are others than those that were tuned."""
    configured = {}
    for index, found in best.items():
        place = place_of(network, index, found["key"])
        if (told := found.get("space")) and told != meaning(network.workloads[place].sketches, spec):
            raise ArtifactFailed(f"the choices of operator {index} are another version's; tune again")
        configured[place] = found["sketch"], tuple(found["choices"]), found["seconds"]
    return configured


def place_of(network: Network, index: str, key: str) -> int:
    """Of the operator that has that key among the network's; raises ArtifactFailed where it is another."""
    from workers.tvm_backend.programs import key_of

    number = int(index)
    if number >= len(network.extracted) or key_of(network.extracted[number].mod) != key:
        raise ArtifactFailed(f"operator {index} is not the one that was tuned: the versions changed; tune again")
    return number
