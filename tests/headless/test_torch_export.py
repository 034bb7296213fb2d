"""A .pt2 file on the command line: without its flag, and beside others that are converted there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from workers.headless import torch_export
from workers.headless.__main__ import main
from workers.headless.torch_export import as_onnx


def test_a_torch_export_file_needs_the_flag_which_says_its_risk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "network.pt2"
    path.write_bytes(b"anything")
    assert main(["tune", str(path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "--allow-torch-export" in said
    assert "run code" in said
    assert "Traceback" not in said


def test_what_a_killed_conversion_left_goes_and_what_another_is_at_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "network.pt2", tmp_path / "out"
    source.write_bytes(b"anything")
    left = out / ".tuningsite-convert-killed"
    left.mkdir(parents=True)
    (left / "large").write_bytes(b"1")
    seen = []

    def converted(order: Mapping[str, Any]) -> dict[str, str]:
        seen.append([path.name for path in out.iterdir()])
        another = os.open(out, os.O_RDONLY)
        with pytest.raises(BlockingIOError):  # it would wait until this one is done
            fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(another)
        made = Path(order["work_dir"]) / "made.onnx"
        made.write_bytes(b"a network")
        return {"onnx": str(made)}

    monkeypatch.setattr(torch_export, "ask", converted)
    made = as_onnx(source, out, allowed=True)
    assert made.read_bytes() == b"a network"
    assert seen == [[seen[0][0]]]
    assert seen[0][0] != left.name
    assert list(out.iterdir()) == [made]
    assert as_onnx(source, out, allowed=True) == made
    assert len(seen) == 1, "what was converted is kept"
