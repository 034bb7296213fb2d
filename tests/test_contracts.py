"""Each contract between rooms holds, and names the bad import that breaks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BROKEN = [
    ("rooms", "workers/messages/bad.py", "import workers.supervision"),
    ("rooms", "workers/pipeline/bad.py", "import workers.tvm_backend"),
    ("rooms", "workers/child/bad.py", "import workers.headless"),
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


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    command, wide = (
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        {**os.environ, "COLUMNS": "500"},
    )
    return subprocess.run(command, cwd=root, env=wide, capture_output=True, text=True, check=False, timeout=100)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each contract, by its id, in a tree with all the bad imports: reading a tree is what takes long."""
    root = tmp_path_factory.mktemp("tree")
    for name in ("apps", "workers", "tuningsite"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for _, file, line in BROKEN:
        with (root / file).open("a") as bad:
            bad.write(f"{line}\n")
    (root / "workers/unplaced.py").touch()
    done = lint(root)
    assert done.returncode == 1, done.stdout + done.stderr
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    ids = {contract["name"]: contract["id"] for contract in contracts}
    found: dict[str, str] = {}
    contract = ""
    for text in done.stdout.partition("Broken contracts")[2].splitlines():
        contract = ids.get(text.strip(), contract)
        found[contract] = found.get(contract, "") + text + "\n"
    return found


def test_the_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.mutation
@pytest.mark.parametrize(("contract", "file", "line"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_bad_import_breaks_its_contract(told: dict[str, str], contract: str, file: str, line: str) -> None:
    importer, imported = file.removesuffix(".py").replace("/", "."), line.removeprefix("import ")
    assert f"{importer} -> {imported} (l." in told[contract], told


@pytest.mark.mutation
def test_a_circle_is_told(told: dict[str, str]) -> None:
    """Supervision stands on messages: a bad import of these closes a circle."""
    assert "No cycles are allowed in workers." in told["one-way"], told


@pytest.mark.mutation
def test_a_room_without_a_place_among_the_others_is_told(told: dict[str, str]) -> None:
    assert "- workers.unplaced\n" in told["rooms"], told
