import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


class Crowd:
    """All processes whose command line holds the nonce."""

    def __init__(self) -> None:
        self.nonce = f"toy-{secrets.token_hex(8)}"

    def pids(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                    if alive and self.nonce.encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return found


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    crowd = Crowd()
    yield crowd
    for pid in crowd.pids():
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
