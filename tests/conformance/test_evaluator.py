"""What every evaluator owes the measuring process."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.engine.evaluator import EVALUATORS, evaluator_from
from workers.engine.ports import Evaluator
from workers.messages.effects import ENDS

MOST = 2000
VERDICTS = ENDS.keys() - {"late"}
pytestmark = pytest.mark.parametrize("name", sorted(EVALUATORS))
kernel = st.lists(st.floats(1e-7, 10.0), min_size=1, max_size=30)
incumbents = st.none() | st.floats(1e-7, 10.0)


def timed(evaluator: Evaluator, source: list[float], incumbent: float | None) -> list[float]:
    """What a measuring process does; the times of `source` come round again."""
    times: list[float] = []
    while more := evaluator.more(times, incumbent):
        assert more > 0
        times += [source[(len(times) + i) % len(source)] for i in range(more)]
        assert len(times) <= MOST
    return times


@given(kernel, incumbents)
@settings(deadline=None, max_examples=80)
def test_it_ends_after_at_least_one_run_with_a_known_verdict(
    name: str, source: list[float], incumbent: float | None
) -> None:
    evaluator = evaluator_from(name, {})
    times = timed(evaluator, source, incumbent)
    seconds, spread = evaluator.estimate(times)
    assert len(times) >= 1
    assert evaluator.verdict(times, incumbent) in VERDICTS
    assert min(times) <= seconds * (1 + 1e-9)
    assert seconds <= max(times) * (1 + 1e-9)
    assert spread >= 0


@given(kernel)
@settings(deadline=None, max_examples=20)
def test_without_an_incumbent_nothing_is_rejected(name: str, source: list[float]) -> None:
    evaluator = evaluator_from(name, {})
    assert evaluator.verdict(timed(evaluator, source, None), None) != "rejected"


def test_travels_as_json_and_as_pickle(name: str) -> None:
    evaluator = EVALUATORS[name]()
    described = json.loads(json.dumps(asdict(evaluator)))
    again = [evaluator_from(name, described), pickle.loads(pickle.dumps(evaluator))]
    source = [1e-3, 1.1e-3, 0.9e-3]
    assert all(timed(one, source, 1e-3) == timed(evaluator, source, 1e-3) for one in again)
