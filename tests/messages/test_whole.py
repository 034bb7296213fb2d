"""Files that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.messages.whole import whole, write_whole


def test_a_write_that_breaks_off_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    write_whole(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half of it, and then \ud800")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    write_whole(path, "after")
    assert path.read_text() == "after"


def test_files_whose_names_differ_in_their_ends_are_written_at_once(tmp_path: Path) -> None:
    with whole(tmp_path / "figures.json") as one, whole(tmp_path / "figures.svg") as other:
        one.write_text("one")
        other.write_text("other")
    assert (tmp_path / "figures.json").read_text() == "one"
    assert (tmp_path / "figures.svg").read_text() == "other"
