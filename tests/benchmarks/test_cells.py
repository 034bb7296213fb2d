from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from workers.benchmarks import identity
from workers.benchmarks.cells import DONE, FAILED, VOID, Cells, Key
from workers.benchmarks.identity import IMPORT, RECORDS, STOCK, TUNED, product_version
from workers.child.archive import SHIPPED
from workers.engine.methods import METHODS, method
from workers.messages import methods

KEY = Key("speed", "ab" * 32, "stock", 0, "same", "20 trials an operator", "A CPU", 2, "0.1.0")


@pytest.fixture
def cells(tmp_path: Path) -> Cells:
    return Cells(tmp_path / "cells")


@pytest.mark.parametrize("state", [DONE, VOID])
def test_a_cell_that_ended_is_found_again(cells: Cells, state: str) -> None:
    kept = cells.keep(KEY, "tiny", {"state": state, "reason": ""})
    assert cells.find(KEY, "tiny") == kept


def test_a_cell_that_broke_off_is_shown_and_run_again(cells: Cells) -> None:
    cells.keep(KEY, "tiny", {"state": FAILED, "reason": "no room"})
    assert cells.find(KEY, "tiny") is None
    assert [cell["reason"] for cell in cells.all("speed")] == ["no room"]


@pytest.mark.parametrize(
    "change",
    [{"network": "cd" * 32}, {"arm": "warm"}, {"seed": 1}, {"layout": "free"}, {"budget": "4 trials an operator"},
     {"cpu": "Another"}, {"cores": 4}, {"version": "0.2.0"}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_whatever_differs_makes_another_cell(cells: Cells, change: dict[str, object]) -> None:
    cells.keep(KEY, "tiny", {"state": DONE, "reason": ""})
    assert cells.find(replace(KEY, **change), "tiny") is None


def test_the_table_gets_the_latest_of_cells_that_differ_in_the_version_alone(cells: Cells) -> None:
    cells.keep(KEY, "tiny", {"state": DONE, "reason": "older"})
    cells.keep(replace(KEY, version="0.2.0"), "tiny", {"state": DONE, "reason": "newer"})
    cells.keep(replace(KEY, kind="latency"), "tiny", {"state": DONE, "reason": "other"})
    assert len(cells.all("speed")) == 1


def test_one_that_failed_hides_none_that_did_not(cells: Cells) -> None:
    cells.keep(KEY, "tiny", {"state": FAILED, "reason": "oldest"})
    cells.keep(replace(KEY, version="0.2.0"), "tiny", {"state": DONE, "reason": "older"})
    cells.keep(replace(KEY, version="0.3.0"), "tiny", {"state": FAILED, "reason": "newer"})
    assert [cell["reason"] for cell in cells.all("speed")] == ["older"]


def test_an_arm_of_any_length_has_a_file_of_its_own(cells: Cells, tmp_path: Path) -> None:
    """What has run is not lost to a name that no file system takes."""
    long = [
        replace(KEY, arm="auto" + "+explorer.chains=64" * 20 + letter * 300)
        for letter in ("x", "\N{GREEK SMALL LETTER MU}")
    ]
    kept = [cells.keep(key, "tiny", {"state": DONE, "reason": key.arm}) for key in long]
    assert [cells.find(key, "tiny") for key in long] == kept
    assert len(cells.all("speed")) == 2


def test_half_a_file_is_no_cell(cells: Cells, tmp_path: Path) -> None:
    cells.keep(KEY, "tiny", {"state": DONE, "reason": ""})
    (path,) = (tmp_path / "cells").glob("*.json")
    path.write_text(path.read_text()[:-20])
    assert cells.find(KEY, "tiny") is None
    assert cells.all("speed") == []


def test_a_version_changes_with_the_rooms_it_names_and_with_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.0"\n')
    inside, alone, outside = (tmp_path / name for name in ("room/part/deep.py", "one.py", "other/room.py"))
    for path in (inside, alone, outside):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("first")
    monkeypatch.setattr(identity, "ROOT", tmp_path)
    before = product_version(("room", "one.py"))
    outside.write_text("second")
    assert product_version(("room", "one.py")) == before
    inside.write_text("second")
    between = product_version(("room", "one.py"))
    alone.write_text("second")
    assert len({before, between, product_version(("room", "one.py")), product_version(("room",))}) == 4


def test_a_version_changes_with_the_libraries_by_which_the_engine_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [product_version(rooms) for rooms in (TUNED, STOCK)]
    monkeypatch.setattr(identity, "version", lambda name: "9" if name == "xgboost-cpu" else version(name))
    after = [product_version(rooms) for rooms in (TUNED, STOCK)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True]


def test_a_version_changes_with_a_number_of_a_method_and_not_with_what_is_said_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = Path(methods.__file__).parent
    assert not any(said.is_relative_to(identity.ROOT / room) for room in TUNED)
    before = [product_version(rooms) for rooms in (TUNED, STOCK)]
    monkeypatch.setitem(METHODS, "auto", method("auto", {"search.earlier": "64"}))
    after = [product_version(rooms) for rooms in (TUNED, STOCK)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True]


def test_a_version_names_the_script_that_times_a_library() -> None:
    assert str(SHIPPED.relative_to(identity.ROOT)) in STOCK


def test_the_rooms_that_versions_name_are_there() -> None:
    assert len({product_version(rooms) for rooms in ((), IMPORT, STOCK, RECORDS, TUNED)}) == 5
