from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import Start, Told, starter, teller


@pytest.fixture(scope="session")
def started(machine_cache: Path) -> Start:
    """Starts `manage.py benchmark` with these arguments."""
    return starter(["manage.py", "benchmark"], machine_cache)


@pytest.fixture(scope="session")
def told(started: Start) -> Told:
    """Runs a benchmark to its end: exit code, standard output, standard error."""
    return teller(started, 600)
