from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def alone(lock_of_its_own: None) -> None:
    """Every test here."""
