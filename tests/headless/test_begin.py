"""What a run takes over from what is in its directory."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workers.headless.errors import UserMistake
from workers.headless.tune import KNOWN, RUN, _begin, _order
from workers.messages.spec import Budget, RunSpec
from workers.supervision import DirectoryJournal

SPEC = RunSpec("a.onnx", {"kind": "llvm"}, 2, peak_flops=1e11, bandwidth=1e10, budget=Budget(trials=40))
ROW = {"operator": 0, "sketch": 0, "choices": [1], "seconds": 0.1, "identity": "i", "cause": "", "round": 0}


def told(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    """An attempt at another network that measured these, and was stopped."""
    return [
        {"kind": "operators", "clock": 50.0, "operators": [{"index": 0, "key": "another network's"}]},
        {"kind": "batch", "clock": 60.0, "measurements": list(rows), "checkpoint": {"proposers": ["another's"]}},
    ]


def asked(resume: bool = False, records: tuple[str, ...] = ()) -> argparse.Namespace:
    return argparse.Namespace(resume=resume, records=records)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[DirectoryJournal]:
    with DirectoryJournal(tmp_path / RUN) as journal:
        yield journal


@pytest.mark.parametrize("resume", [False, True])
def test_an_attempt_that_measured_nothing_binds_no_later_run(
    journal: DirectoryJournal, tmp_path: Path, resume: bool
) -> None:
    journal.write(told())
    spec = _begin(journal, SPEC, tmp_path, asked(resume))
    order = _order(spec, tmp_path, journal, journal.history())
    assert (order["keys"], order["clock"], order["checkpoint"]) == ([], 0.0, None)
    journal.write(told(ROW))
    assert journal.trials == 1
    assert _order(spec, tmp_path, journal, journal.history())["keys"] == ["another network's"]


def test_records_stay_with_the_run_that_was_given_them(journal: DirectoryJournal, tmp_path: Path) -> None:
    known = tmp_path / RUN / KNOWN
    known.write_text("of a run that died")
    _begin(journal, SPEC, tmp_path, asked(resume=True))
    assert known.read_text() == "of a run that died"
    _begin(journal, SPEC, tmp_path, asked())
    assert known.read_text() != "of a run that died"


def test_a_run_goes_on_with_the_peaks_that_it_began_with(journal: DirectoryJournal, tmp_path: Path) -> None:
    """They decide which convolutions are transformed, and so what the operators are."""
    _begin(journal, SPEC, tmp_path, asked())
    journal.write(told(ROW))
    now = replace(SPEC, peak_flops=3e11, bandwidth=0.5e10, budget=Budget(trials=80))
    spec = _begin(journal, now, tmp_path, asked(resume=True))
    assert spec == replace(SPEC, budget=Budget(trials=80))
    assert RunSpec.from_json((tmp_path / RUN / "spec.json").read_text()) == spec


@pytest.mark.parametrize("change", [{"seed": 5}, {"layout": "NCHW"}, {"network": "b.onnx"}])
def test_a_run_goes_on_as_nothing_else(journal: DirectoryJournal, tmp_path: Path, change: dict[str, Any]) -> None:
    _begin(journal, SPEC, tmp_path, asked())
    journal.write(told(ROW))
    with pytest.raises(UserMistake, match=f"with other {next(iter(change))}; name another"):
        _begin(journal, replace(SPEC, **change), tmp_path, asked(resume=True))
    assert json.loads((tmp_path / RUN / "spec.json").read_text()) == json.loads(SPEC.to_json())
