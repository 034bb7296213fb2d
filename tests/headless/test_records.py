"""A run that starts from what earlier ones left in their directories."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from workers.headless.errors import UserMistake
from workers.headless.records import keep_records
from workers.messages.events import encode
from workers.messages.known import decode_known


def journal(out: Path, *seconds: float | None, space: str = "s", torn: str = "", error: str = "") -> Path:
    """An earlier run of one operator, each measurement told by itself."""
    operator = {"index": 0, "key": "k", "space": space}
    rows = [
        {
            "operator": 0,
            "sketch": 0,
            "choices": [number],
            "seconds": value,
            "identity": f"i{number}",
            "cause": "",
            "round": 0,
            "error": error,
        }
        for number, value in enumerate(seconds)
    ]
    events = [
        {"kind": "operators", "clock": 1.0, "operators": [operator]},
        *({"kind": "batch", "clock": 2.0, "measurements": [row]} for row in rows),
    ]
    (out / "run").mkdir(parents=True)
    (out / "run" / "journal.jsonl").write_text("".join(encode(event) + "\n" for event in events) + torn)
    return out


def known(path: Path, *directories: Path) -> list[dict[str, Any]]:
    keep_records([str(directory) for directory in directories], "run", path / "known.json")
    return decode_known((path / "known.json").read_text())


def test_a_journal_becomes_records(tmp_path: Path) -> None:
    (record,) = known(tmp_path, journal(tmp_path / "a", 0.3, None, 0.1))
    assert record == {
        "key": "k",
        "space": "s",
        "points": [[0, [2], 0.1, "i2"], [0, [0], 0.3, "i0"], [0, [1], None, "i1"]],
    }


def test_the_later_directory_counts_as_newer(tmp_path: Path) -> None:
    earlier, later = journal(tmp_path / "a", 0.3, 0.5), journal(tmp_path / "b", 0.4)
    (record,) = known(tmp_path, earlier, later)
    assert [point[2] for point in record["points"]] == [0.4, 0.5]


def test_other_spaces_stay_apart_and_runs_that_name_none_say_nothing(tmp_path: Path) -> None:
    found = known(tmp_path, journal(tmp_path / "a", 0.3), journal(tmp_path / "b", 0.4, space="t"))
    assert [record["space"] for record in found] == ["s", "t"]
    assert known(tmp_path, journal(tmp_path / "c", 0.4, space="")) == []
    assert known(tmp_path) == []


def test_a_run_that_is_being_written_gives_what_it_has(tmp_path: Path) -> None:
    assert len(known(tmp_path, journal(tmp_path / "a", 0.3, torn='{"kind": "ba'))) == 1


@pytest.mark.parametrize("break_it", ["missing", "damaged"])
def test_a_directory_without_a_journal_is_named(tmp_path: Path, break_it: str) -> None:
    directory = tmp_path / "nothing"
    if break_it == "damaged":
        journal(directory, 0.1, torn="nonsense\n{}\n")
    with pytest.raises(UserMistake, match=r"--records .*nothing: it holds no journal.*--out directory"):
        known(tmp_path, directory)


def test_of_a_long_log_no_more_is_held_than_points_have(tmp_path: Path) -> None:
    """What else was told of 1,000 measurements is 10 MB."""
    out = journal(tmp_path / "a", *[0.3] * 1000, error="x" * 10_000)
    tracemalloc.start()
    try:
        known(tmp_path, out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
