"""Which layout a network is tuned in, and that measuring decides it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import zoo
from tests.tvm_backend.local import local_backend, target

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module", autouse=True)
def tvm() -> None:
    target()


@pytest.mark.parametrize(
    ("latencies", "place"),
    [
        ([1.0, 0.95], 0),
        ([1.0, 0.85], 1),
        ([1.0, 2.0], 0),
        ([1.0, math.inf], 0),
        ([math.inf, 1.0], 0),
        ([0.05, math.inf], 0),
        ([math.inf, math.inf], 0),
    ],
)
def test_another_layout_has_to_be_clearly_faster(latencies: list[float], place: int) -> None:
    from workers.tvm_backend.layouts import clearly_fastest

    assert clearly_fastest(latencies) == place


def test_the_layout_is_what_first_configurations_are_faster_in(
    zoo_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import backend as module
    from workers.tvm_backend.layouts import BOTH, clearly_fastest

    told, judged = list[tuple[str, str]](), list[list[float]]()
    monkeypatch.setattr(module, "clearly_fastest", lambda found: judged.append(found) or clearly_fastest(found))
    backend = local_backend(zoo.tiny(zoo_cache), tmp_path, layout="measured", report=lambda *phase: told.append(phase))
    try:
        (note,) = [note for note in backend.notes if note.startswith("layout by first configurations: ")]
        told_of = zip(BOTH, judged[0], strict=True)
        assert note.split(": ")[1] == ", ".join(f"{layout} {1e3 * seconds:.3g} ms" for layout, seconds in told_of)
        assert backend.layout == BOTH[clearly_fastest(judged[0])]
        assert [text for _, text in told if "measuring" in text] == [
            f"measuring the operators' first configurations in {layout}" for layout in BOTH
        ]
        alone = local_backend(zoo.tiny(zoo_cache), tmp_path / "alone", layout=backend.layout)
        alone.close()
        assert [one.key for one in backend.operators()] == [one.key for one in alone.operators()]
        # What the choice measured is new to the run.
        (first, *_) = backend.operators()
        assert backend.measure([candidate(first)], {})[0].seconds
    finally:
        backend.close()


@pytest.mark.mutation
@pytest.mark.parametrize(("slow", "layout"), [("NHWC", "NCHW"), ("NCHW", "NHWC")])
def test_a_layout_of_slow_programs_is_not_taken(
    zoo_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str, layout: str
) -> None:
    from workers.tvm_backend.layouts import Drawn

    latency = Drawn.latency
    monkeypatch.setattr(
        Drawn, "latency", lambda self, *given: latency(self, *given) * (100 if self.layout == slow else 1)
    )
    backend = local_backend(zoo.tiny(zoo_cache), tmp_path, layout="measured")
    backend.close()
    assert backend.layout == layout


def test_a_second_layout_that_does_not_hold_leaves_the_first(
    zoo_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import backend as module

    draw = module.draw

    def failing(*given: Any) -> Any:
        if given[-1] == "NCHW":
            raise RuntimeError("TVM cannot lower this network")
        return draw(*given)

    monkeypatch.setattr(module, "draw", failing)
    backend = local_backend(zoo.tiny(zoo_cache), tmp_path, layout="measured")
    backend.close()
    assert backend.layout == "NHWC"
    assert any("NCHW does not hold here" in note and "cannot lower" in note for note in backend.notes)


def test_an_operator_whose_first_configuration_fails_is_timed_by_its_next(zoo_cache: Path, tmp_path: Path) -> None:
    from workers.tvm_backend.layouts import Drawn

    backend = local_backend(zoo.tiny(zoo_cache), tmp_path)
    try:
        network = Drawn("NHWC", (), backend.operators, backend.workloads, 0, 0)
        silent = lambda phase, text: None  # noqa: E731
        pool, measure, plans = backend._pool, backend._pool.measure, list[list[Any]]()

        def half(plan: list[Any], *rest: Any) -> list[Any]:
            plans.append(plan)
            outcomes = measure(plan, *rest)
            return [replace(outcomes[0], seconds=None, cause="run"), *outcomes[1:]] if len(plans) == 1 else outcomes

        pool.measure = half
        assert 0 < network.latency(pool, silent) < 1
        assert [candidate.operator for candidate in plans[1]] == [plans[0][0].operator]
        pool.measure = lambda plan, *rest: [replace(one, seconds=None) for one in measure(plan, *rest)]
        assert network.latency(pool, silent) == math.inf
    finally:
        del pool.measure
        backend.close()


def test_nothing_is_measured_where_there_is_no_choice(
    tmp_path: Path, zoo_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import layouts

    monkeypatch.setattr(layouts.Drawn, "latency", lambda self, *given: pytest.fail("it measures"))
    backend = local_backend(zoo.tiny_attention(zoo_cache), tmp_path, layout="measured")
    backend.close()
    assert backend.layout == "none"


def candidate(operator: Any) -> Any:
    from workers.engine.ports import Candidate

    return Candidate(operator.index, operator.start[0], "start")
