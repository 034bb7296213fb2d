"""The same tests again, on PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.postgres
@pytest.mark.timeout(900)
def test_every_test_passes_on_postgresql(postgres_url: str) -> None:
    folder = Path(__file__).parent
    rooms = [str(folder / name) for name in ("catalog", "tuning")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *rooms]
    env = {**os.environ, "DATABASE_URL": postgres_url}
    done = subprocess.run(
        command, cwd=folder.parents[1], env=env, capture_output=True, text=True, check=False, timeout=800
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
