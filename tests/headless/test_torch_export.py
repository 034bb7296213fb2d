"""A .pt2 file on the command line without its flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.headless.__main__ import main


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
