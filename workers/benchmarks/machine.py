"""Networks and this machine as the orders of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.headless.arguments import input_shapes, network_file
from workers.headless.content import content_hash
from workers.headless.errors import UserMistake
from workers.headless.machine import this_machine
from workers.messages.spec import RunSpec
from workers.networks.check import load
from workers.networks.errors import NetworkError
from workers.networks.inspect import inspect_model


@dataclass(frozen=True)
class Network:
    """One file: its stem names it, its hash tells it apart."""

    path: Path
    name: str
    sha256: str
    inputs: dict[str, list[int]]


@dataclass(frozen=True)
class Machine:
    """What `this_machine` knows, as far as cells and orders need it."""

    cpu: str
    cores: int
    target: dict[str, Any]
    peak_flops: float
    bandwidth: float

    @classmethod
    def here(cls) -> Machine:
        """Measures the peak where no run did before."""
        found = this_machine()
        hardware, peak = found["hardware"], found["peak"]
        return cls(hardware["name"], hardware["cores"], hardware["target"], peak["flops"], peak["bandwidth"])

    def spec(self, network: Network, method: str, seed: int) -> RunSpec:
        """The run of a network by a method on all cores, in the layout that our runs choose themselves."""
        return RunSpec(
            network=str(network.path),
            target=self.target,
            threads=self.cores,
            peak_flops=self.peak_flops,
            bandwidth=self.bandwidth,
            inputs=network.inputs,
            method=method,
            seed=seed,
        )


def opened(file: str) -> Network:
    """Raises UserMistake for a file that is no network, or one whose inputs have open sizes."""
    path = network_file(file)
    try:
        inspection = inspect_model(load(path))
    except NetworkError as error:
        raise UserMistake(f"{file}: {error.value}: {error.reason}; {error.next_step}") from None
    inputs = input_shapes(inspection.to_json(), {}, f"export {file} with fixed sizes")
    return Network(path, path.stem, content_hash(path), inputs)


def all_opened(files: list[str]) -> list[Network]:
    """Raises UserMistake also when two files have one name: tables and pictures could not tell them apart."""
    networks = [opened(file) for file in files]
    names = [network.name for network in networks]
    for name in names:
        if names.count(name) > 1:
            raise UserMistake(f"{name}: two of the networks have this name; rename one of the files")
    return networks
