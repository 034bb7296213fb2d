"""From best configurations to a library and its database."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tvm_backend.local import mixed
from tests.tvm_backend.test_configurations import Compiled

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def network(zoo_cache: Path) -> Compiled:
    return Compiled(mixed(zoo_cache))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_configuration_is_scheduled_once_for_all_libraries_and_the_database(
    network: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend.programs import Workload

    best, again = (network.drawn(np.random.default_rng(seed)) for seed in (1, 2))
    variant = {**best, 0: again[0]}
    assert variant != best
    schedule, scheduled = Workload.schedule, Counter[Any]()

    def counted(self: Workload, *configuration: Any) -> Any:
        scheduled[id(self), configuration] += 1
        return schedule(self, *configuration)

    monkeypatch.setattr(Workload, "schedule", counted)
    tuned, written = replace(network.network), replace(network.network)
    assert tuned.compiled(best) is not None
    assert tuned.compiled(variant) is not None
    tuned.database(variant, tmp_path / "tuned")
    assert sum(scheduled.values()) == len(best) + 1
    written.database(variant, tmp_path / "written")
    assert sum(scheduled.values()) == 2 * len(best) + 1
    assert files(tmp_path / "tuned") == files(tmp_path / "written")
    assert len(files(tmp_path / "tuned")) == 2
    written.database(best, tmp_path / "written")
    assert files(tmp_path / "tuned") != files(tmp_path / "written")
