"""What every backend owes the pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import zoo
from workers.engine.ports import Backend, Candidate
from workers.engine.space import Configuration, Operator
from workers.landscapes import SimulatedClock, SyntheticLandscape, synthetic_operators

Make = Callable[[], Backend]

CAUSES = {"", "duplicate", "large", "invalid", "build", "crash", "timeout", "memory", "run"}
OPERATORS = synthetic_operators(1, 6)


def drawn(operators: Sequence[Operator], seed: int, count: int = 3) -> list[Candidate]:
    """Distinct random candidates of every operator with a space worth drawing from."""
    rng = np.random.default_rng(seed)
    return [
        Candidate(operator.index, Configuration(0, tuple(row)), "random")
        for operator in operators
        if operator.size > 1000
        for row in operator.sketches[0].unvisited(rng, count, ()).tolist()
    ]


def again(candidates: Sequence[Candidate], at: int) -> list[Candidate]:
    return [Candidate(c.operator, c.configuration, c.origin, at) for c in candidates]


def _synthetic() -> Backend:
    return SyntheticLandscape(3, OPERATORS, SimulatedClock())


def _local(folder: Path) -> Make:
    from tests.tvm_backend.local import local_backend

    places = (folder / f"work{number}" for number in range(100))
    return lambda: local_backend(zoo.tiny(folder), next(places))


@pytest.fixture(scope="module", params=["synthetic", pytest.param("local", marks=pytest.mark.tvm)])
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Make:
    if request.param == "local":
        return _local(tmp_path_factory.mktemp("local"))
    return _synthetic


@pytest.fixture(scope="module")
def backend(make: Make) -> Iterator[Backend]:
    """One for the whole file; every test draws with a seed of its own."""
    made = make()
    yield made
    made.close()


def children() -> set[int]:
    found: set[int] = set()
    for thread in Path(f"/proc/{os.getpid()}/task").iterdir():
        with suppress(OSError):
            found |= {int(pid) for pid in (thread / "children").read_text().split()}
    return found


def test_operators_are_numbered_and_their_starts_lie_in_their_spaces(backend: Backend) -> None:
    for index, operator in enumerate(backend.operators()):
        assert operator.index == index
        assert operator.weight >= 1
        assert operator.work > 0
        for start in operator.start:
            sizes = operator.sketches[start.sketch].sizes
            assert len(start.choices) == len(sizes)
            assert all(0 <= c < n for c, n in zip(start.choices, sizes, strict=True))


def test_one_outcome_a_candidate_in_order(backend: Backend) -> None:
    candidates = drawn(backend.operators(), 0)
    outcomes = backend.measure(candidates, {})
    assert [outcome.candidate for outcome in outcomes] == candidates
    for outcome in outcomes:
        assert outcome.cause in CAUSES
        assert (outcome.seconds is None) == bool(outcome.cause)
        if outcome.seconds is not None:
            assert outcome.seconds > 0
            assert outcome.spread >= 0
            assert outcome.runs > 0
            assert outcome.stopped
            assert outcome.identity
            assert outcome.build_seconds > 0
            assert outcome.measure_seconds > 0
    assert any(outcome.seconds for outcome in outcomes)


def test_nothing_asked_nothing_answered(backend: Backend) -> None:
    assert backend.measure([], {}) == []


def test_a_program_met_again_is_a_duplicate_with_its_identity(backend: Backend) -> None:
    candidates = drawn(backend.operators(), 1)
    first = backend.measure(candidates, {})
    second = backend.measure(candidates, {})
    for one, two in zip(first, second, strict=True):
        assert two.identity == one.identity
        assert two.cause == ("duplicate" if one.identity else one.cause)


def test_of_two_equal_candidates_in_a_batch_one_is_a_duplicate(backend: Backend) -> None:
    candidates = drawn(backend.operators(), 2)
    outcomes = backend.measure([*candidates, *candidates], {})
    for one, two in zip(outcomes[: len(candidates)], outcomes[len(candidates) :], strict=True):
        if one.identity:
            assert [one.cause, two.cause].count("duplicate") == 1


def test_a_later_round_is_measured_again(backend: Backend) -> None:
    candidates = drawn(backend.operators(), 3)
    first = backend.measure(candidates, {})
    second = backend.measure(again(candidates, 1), {})
    for one, two in zip(first, second, strict=True):
        assert two.identity == one.identity
        assert (two.seconds is None) == (one.seconds is None)


def test_a_remembered_program_is_a_duplicate_in_a_new_backend(make: Make, backend: Backend) -> None:
    candidates = drawn(backend.operators(), 4)
    first = backend.measure(candidates, {})
    fresh = make()
    try:
        assert fresh.operators() == backend.operators()
        for outcome in first:
            if outcome.identity:
                fresh.remember(outcome.candidate.operator, outcome.identity)
        for one, two in zip(first, fresh.measure(candidates, {}), strict=True):
            assert two.cause == ("duplicate" if one.identity else one.cause)
    finally:
        fresh.close()


def test_what_was_read_back_is_the_same_program(backend: Backend) -> None:
    for outcome in backend.measure(drawn(backend.operators(), 5), {}):
        if outcome.identity:
            made = Candidate(outcome.candidate.operator, outcome.configuration, "random")
            found = backend.measure([made], {})[0]
            assert found.cause == "duplicate"
            assert found.identity == outcome.identity


def test_bad_candidates_never_raise_and_spoil_nothing(backend: Backend) -> None:
    good = drawn(backend.operators(), 6)
    at, choices = good[0].operator, good[0].configuration.choices
    bad = [
        Candidate(len(backend.operators()), Configuration(0, choices), "random"),
        Candidate(at, Configuration(99, choices), "random"),
        Candidate(at, Configuration(0, choices[:-1]), "random"),
        Candidate(at, Configuration(0, (*choices, 0)), "random"),
        Candidate(at, Configuration(0, (10**6, *choices[1:])), "random"),
    ]
    outcomes = backend.measure([*bad, *good], {})
    assert [outcome.candidate for outcome in outcomes] == [*bad, *good]
    for outcome in outcomes[: len(bad)]:
        assert outcome.seconds is None
        assert outcome.cause in {"invalid", "build"}
        assert outcome.error
    assert any(outcome.seconds for outcome in outcomes[len(bad) :])


def test_spent_grows_with_the_work(backend: Backend) -> None:
    before = backend.spent()
    backend.measure(drawn(backend.operators(), 7), {})
    after = backend.spent()
    assert set(after) <= {"apply", "build", "measure", "wait", "import"}
    assert all(after[category] >= seconds >= 0 for category, seconds in before.items())
    assert after["build"] > before.get("build", 0.0)
    assert after["measure"] > before.get("measure", 0.0)


def test_closing_twice_leaves_no_process(make: Make) -> None:
    before = children()
    made: Any = make()
    made.close()
    made.close()
    assert children() <= before
