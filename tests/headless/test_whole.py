"""Files that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.headless.whole import write_whole


def test_a_write_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    write_whole(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half of it, and then \ud800")
    assert path.read_text() == "before"
    write_whole(path, "after")
    assert path.read_text() == "after"
