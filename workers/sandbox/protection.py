"""What the kernel offers to hold a child back; `python -m workers.sandbox.protection` prints it as JSON."""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

from workers.sandbox import landlock, seccomp


class Protection(NamedTuple):
    """`landlock`: its version, 0 for none. `filtered`: whether system calls are, those for sockets among them."""

    landlock: int = 0
    filtered: bool = False

    def __str__(self) -> str:
        files = f"Landlock version {self.landlock}" if self.landlock else "no Landlock: they read this user's files"
        calls = "a filter on system calls" if self.filtered else "no filter on system calls: they open sockets"
        return f"{files}; {calls}"

    def lacks(self, version: int) -> str:
        """What is missing for work that requires this Landlock version and the filter, or ""; 0 requires neither."""
        if not version:
            return ""
        if self.landlock < version:
            return f"Landlock version {version}, the kernel offers {self.landlock or 'none'}"
        return "" if self.filtered else "a filter on system calls (seccomp), the kernel offers none"


def offered() -> Protection:
    """By this machine's kernel."""
    return Protection(landlock.supported(), seccomp.supported())


if __name__ == "__main__":
    sys.stdout.write(json.dumps(offered()._asdict()) + "\n")
