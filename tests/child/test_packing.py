"""The archive as a file."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

from workers.baselines.order import Latency
from workers.baselines.verify import Verdict
from workers.child.archive import needed, pack


def test_who_unpacks_an_archive_may_let_others_read_it(tmp_path: Path) -> None:
    """It is made where files are nobody else's."""
    folder, before = tmp_path / "artifact", os.umask(0o077)
    try:
        folder.mkdir()
        (folder / "model.so").write_bytes(b"library")
        (folder / "metadata.json").write_text(
            '{"network": "n", "hardware": "h", "threads": 2, "target": {"kind": "llvm"}, '
            '"versions": {"apache-tvm": "1", "apache-tvm-ffi": "2"}}'
        )
        (tmp_path / "log").write_bytes(b"{}")
        archive = pack({"log": str(tmp_path / "log")}, folder, tmp_path, Latency(1.0, 1.0, 1.0, 3), None, Verdict(()))
    finally:
        os.umask(before)
    with zipfile.ZipFile(archive) as packed:
        modes = {member.filename: member.external_attr >> 16 for member in packed.infolist()}
        assert packed.testzip() is None
    assert modes == dict.fromkeys(("README.txt", "metadata.json", "model.so", "tuning_log.jsonl"), stat.S_IFREG | 0o644)


def test_a_library_asks_of_a_processor_what_its_code_is_made_of() -> None:
    flags = ["avx2", "clwb", "fma", "pni", "rdseed", "sse4_1", "xsaves"]
    assert needed({"flags": flags, "machine": "x86_64"}) == ["avx2", "fma", "pni", "sse4_1"]
    arm = ["asimd", "asimddp", "atomics", "dit", "fp", "sb", "ssbs", "sve2"]
    assert needed({"flags": arm, "machine": "aarch64"}) == ["asimd", "asimddp", "atomics", "fp", "sve2"]
