"""A run that tunes what the papers tune."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import zoo

pytestmark = pytest.mark.tvm


def test_only_convolutions_and_dense_layers_get_slots_and_the_network_is_whole(
    told: Callable[..., tuple[int, str, str]], zoo_cache: Path, tmp_path: Path
) -> None:
    code, _, errors = told("tune", zoo.tiny(zoo_cache), "--operators", "compute", "--trials", 40, "--out", tmp_path)
    assert code == 0, errors
    assert (tmp_path / "tiny.zip").is_file()
    events = [json.loads(line) for line in (tmp_path / "run" / "tuning_log.jsonl").read_text().splitlines()]
    names = next(
        {row["index"]: row["name"] for row in event["operators"]} for event in events if event["kind"] == "operators"
    )
    tuned = {names[event["operator"]] for event in events if event["kind"] == "slot"}
    assert tuned
    assert all("conv" in name or "matmul" in name or "dense" in name for name in tuned)
    assert any("pool" in name for name in names.values())
