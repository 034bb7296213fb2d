"""A mean within a variance: of all programs that TVM makes of it, those that compute it are told from those that do not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.networks.forms import drawn, one
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import Compiled, drawn_input

pytestmark = pytest.mark.tvm

DRAWS = 12


@pytest.fixture(scope="module")
def normalised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Compiled]:
    return normalisation(tmp_path_factory.mktemp("normalised"))


def normalisation(folder: Path) -> tuple[Path, Compiled]:
    path = folder / "network.onnx"
    network = one("InstanceNormalization", [1, 8, 16, 16], 17, drawn(8), drawn(8, seed=1))
    path.write_bytes(network.SerializeToString())
    return path, Compiled(path)


def errors(path: Path, compiled: Compiled) -> list[float]:
    x, rng = drawn_input(compiled.shape), np.random.default_rng(3)
    wanted = reference(path, x)
    return [float(np.abs(compiled.run(compiled.drawn(rng), x) - wanted).max()) for _ in range(DRAWS)]


def test_a_sum_is_added_up_once_in_every_program_that_is_taken(normalised: tuple[Path, Compiled]) -> None:
    assert max(errors(*normalised)) < 1e-4


def test_what_a_program_computes_is_told_by_running_it(normalised: tuple[Path, Compiled]) -> None:
    from workers.tvm_backend.plain import Plain

    _, compiled = normalised
    plain, rng = [Plain(workload) for workload in compiled.workloads], np.random.default_rng(3)
    for _ in range(DRAWS):
        for index, (sketch, choices, _) in compiled.drawn(rng).items():
            assert plain[index].computes(sketch, choices)


def test_a_candidate_is_built_as_the_library_is_and_what_it_should_compute_as_tvm_builds(
    normalised: tuple[Path, Compiled], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What our passes make wrong is wrong in the library too, and a reference that they made would be as wrong."""
    import tvm

    from workers.tvm_backend.lowering import PIPELINE
    from workers.tvm_backend.plain import Plain
    from workers.tvm_backend.programs import COMMON_LEFT

    built, build = [], tvm.tirx.build

    def watched(*given: Any, pipeline: str, **named: Any) -> Any:
        built.append((pipeline, set(COMMON_LEFT) <= set(tvm.transform.PassContext.current().config)))
        return build(*given, pipeline=pipeline, **named)

    _, compiled = normalised
    sketch, choices, _ = compiled.drawn(np.random.default_rng(3))[0]
    monkeypatch.setattr(tvm.tirx, "build", watched)
    assert Plain(compiled.workloads[0]).computes(sketch, choices)
    assert built == [("default", False), (PIPELINE, True)]


def test_of_a_single_sum_nothing_is_asked(normalised: tuple[Path, Compiled]) -> None:
    assert sorted(workload.sums_of_sums for workload in normalised[1].workloads) == [False, True]


@pytest.mark.mutation
def test_a_sum_that_is_added_up_again_and_again_is_noticed(
    normalised: tuple[Path, Compiled], monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import programs

    monkeypatch.setattr(programs, "repeats_a_sum", lambda program: False)
    monkeypatch.setattr(programs, "MOST", math.inf)
    assert max(errors(*normalised)) > 0.1


def test_sums_of_halves_may_be_rounded_to_either_neighbour() -> None:
    """Of two right orders of adding; a number that is off by more is another."""
    from workers.tvm_backend.plain import STRAY, _close

    rng = np.random.default_rng(0)
    given = rng.random((2000, 4096), np.float32)
    one, other = (sums.astype(np.float16) for sums in (given.sum(axis=1), np.cumsum(given, axis=1)[:, -1]))
    assert np.mean(one != other) > STRAY, "else nothing is shown"
    assert _close(one, other)
    assert not _close(one, (one * 1.01).astype(np.float16))
    assert not _close(one.astype(np.float32), one.astype(np.float32) * 1.001)
