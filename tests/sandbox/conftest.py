import time
from collections.abc import Callable

import pytest


@pytest.fixture
def eventually() -> Callable[[Callable[[], object], float], bool]:
    """Whether a condition comes true before so many seconds have passed."""

    def poll(condition: Callable[[], object], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.01)
        return bool(condition())

    return poll
