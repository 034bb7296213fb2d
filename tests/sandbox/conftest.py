from collections.abc import Callable

import pytest

from tests.processes import comes_true


@pytest.fixture
def eventually() -> Callable[[Callable[[], object], float], bool]:
    """Whether a condition comes true before so many seconds have passed."""
    return comes_true
