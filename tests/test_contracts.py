"""Each contract between rooms holds, and one bad import breaks it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BROKEN = [
    ("supervision", "workers/messages/bad.py", "import workers.supervision"),
    ("child", "workers/pipeline/bad.py", "import workers.tvm_backend"),
    ("supervisor-is-light", "workers/supervision/bad.py", "import numpy"),
    ("networks", "workers/networks/bad.py", "import tvm"),
    ("engine", "workers/engine/bad.py", "import django"),
    ("torch", "workers/engine/bad.py", "import torch"),
    ("torch-in-a-child", "workers/actors/bad.py", "import torch"),
    ("web", "apps/core/bad.py", "import workers.engine"),
    ("apps", "apps/catalog/bad.py", "import apps.tuning"),
    ("tuningsite", "apps/core/bad.py", "import tuningsite.settings"),
    ("both-sides", "workers/child/bad.py", "import apps.tuning.services"),
    ("actors", "workers/actors/bad.py", "import apps.tuning.models"),
]


def lint(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=100)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in ("apps", "workers", "tuningsite"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def test_the_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.mutation
@pytest.mark.parametrize(("contract", "file", "line"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_bad_import_breaks_its_contract(copied: Path, contract: str, file: str, line: str) -> None:
    bad = copied / file
    bad.write_text(f"{line}\n")
    try:
        done = lint(copied, "--contract", contract)
    finally:
        bad.unlink()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout
