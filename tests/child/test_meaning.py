"""What an operator's choices mean."""

from __future__ import annotations

import importlib.metadata
from collections import Counter

import pytest

from workers.child.meaning import meaning
from workers.engine.space import Knob, Sketch
from workers.messages.spec import RunSpec

pytestmark = pytest.mark.tvm


def test_packages_are_looked_up_once_for_many_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import runtime

    runtime.load()
    version, asked = importlib.metadata.version, Counter[str]()

    def counted(name: str) -> str:
        asked[name] += 1
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", counted)
    runtime._version.cache_clear()
    spec = RunSpec("", {"kind": "llvm"}, 2, 1e11, 1e10)
    operators = [(Sketch((Knob("unroll", "category", tuple((place,) for place in range(n))),)),) for n in range(2, 40)]
    assert len({meaning(sketches, spec) for sketches in operators}) == len(operators)
    assert runtime.versions() == {name: version(name) for name in runtime.DECIDING}
    assert set(asked.values()) == {1}
