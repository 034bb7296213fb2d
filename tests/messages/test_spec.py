"""The order for a run as text."""

from __future__ import annotations

import json

import pytest

from workers.messages.spec import Budget, RunSpec

SPEC = RunSpec("net.onnx", {"kind": "llvm"}, 2, 1e11, 1e10, budget=Budget(seconds=60.0, min_gain=0.01))


def test_a_spec_is_what_its_text_says() -> None:
    assert RunSpec.from_json(SPEC.to_json()) == SPEC


def test_an_order_from_before_a_limit_was_known_has_none_of_it() -> None:
    """Runs in the database and directories of `tune` outlive a version."""
    text = json.dumps(
        {**json.loads(SPEC.to_json()), "budget": {"seconds": 60.0, "trials": None, "target_latency": None}}
    )
    assert RunSpec.from_json(text).budget == Budget(seconds=60.0)


def test_a_limit_that_nobody_knows_is_refused_and_not_forgotten() -> None:
    text = json.dumps({**json.loads(SPEC.to_json()), "budget": {"max_regret": 1.0}})
    with pytest.raises(TypeError, match="max_regret"):
        RunSpec.from_json(text)


def test_operators_that_nobody_knows_are_refused() -> None:
    text = json.dumps({**json.loads(SPEC.to_json()), "operators": "some"})
    with pytest.raises(ValueError, match="'some' is unknown; use 'all' or 'compute'"):
        RunSpec.from_json(text)
