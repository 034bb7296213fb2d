"""Every recording in workers/landscapes/recorded has to have its costs.json and to be of today's spaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.landscapes.played import SHIPPED
from tests.landscapes.recorded import costs, curve_recording
from workers.landscapes import Costs, CurveRecording, LandscapeError, SpaceRecording, files

MOST = 20e6
"""Bytes: what every clone of the repository carries."""


def shipped(folder: Path) -> list[Path]:
    """Landscapes in a folder; AssertionError when they are large, without costs, of another machine's costs, or of spaces
    that this product no longer has."""
    assert sum(path.stat().st_size for path in folder.glob("**/*")) < MOST
    found = sorted([*folder.glob("**/*.curve.npz"), *folder.glob("**/*.space.npz")])
    for path in found:
        recording = (CurveRecording if path.name.endswith(".curve.npz") else SpaceRecording).read(path)
        assert Costs.read(path.with_name("costs.json")).machine == recording.header["hardware"]["name"]
        assert 0 < recording.noise < 0.2
    return found


def test_what_is_shipped_is_small_whole_and_of_these_spaces() -> None:
    assert len({path.parent for path in shipped(SHIPPED)}) >= 2


@pytest.mark.mutation
@pytest.mark.parametrize("fault", ["none", "costs", "machine", "spaces", "size"])
def test_a_recording_that_does_not_belong_is_noticed(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve_recording(tmp_path / "parts", 1, 16).write(tmp_path / "synthetic.curve.npz")
    costs().write(tmp_path / "costs.json")
    if fault == "costs":
        (tmp_path / "costs.json").unlink()
    elif fault == "machine":
        Costs(costs().seconds, "another").write(tmp_path / "costs.json")
    elif fault == "spaces":
        monkeypatch.setattr(files, "SPACE_VERSION", 99)
    elif fault == "size":
        monkeypatch.setitem(globals(), "MOST", 1e3)
    if fault == "none":
        assert len(shipped(tmp_path)) == 1
    else:
        with pytest.raises((AssertionError, LandscapeError)):
            shipped(tmp_path)
