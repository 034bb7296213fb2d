"""The knobs of real operators, as a run tells them: short, and every choice of them can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tvm_backend.local import local_backend, mixed
from workers.child.tune import _described
from workers.messages.knobs import option

pytestmark = pytest.mark.tvm

BYTES = 4000
"""Of one operator; its options listed, a convolution of 512 channels would have 30,000."""


def test_what_is_told_of_knobs_is_short_and_reads_back_as_what_they_are(zoo_cache: Path, tmp_path: Path) -> None:
    backend = local_backend(mixed(zoo_cache), tmp_path)
    try:
        kinds = set()
        for operator in backend.operators():
            told = json.loads(json.dumps(_described(operator, "", None)))["knobs"]
            assert len(json.dumps(told)) < BYTES
            assert [len(knobs) for knobs in told] == [len(sketch.knobs) for sketch in operator.sketches]
            for sketch, knobs in zip(operator.sketches, told, strict=True):
                for knob, words in zip(sketch.knobs, knobs, strict=True):
                    kinds.add("extent" if "extent" in words else knob.kind)
                    assert words["name"] == knob.name
                    assert [option(words, choice) for choice in range(len(knob.options))] == list(knob.options)
        assert {"extent", "category"} <= kinds
    finally:
        backend.close()
