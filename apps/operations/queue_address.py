"""Where the server of the queue that comes with the site listens. Standard library only: the settings read it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import quote

LONGEST_PATH = 100  # bytes: the kernel takes 107


def socket_path(data_dir: Path) -> Path:
    """Where the server of this data directory listens: in it, or in /tmp where its name is too long for a socket."""
    path = data_dir.resolve() / "redis" / "socket"
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]
    return Path("/tmp") / f"tuningsite-{os.getuid()}-{digest}" / "socket"


def url_of(path: Path, password: str) -> str:
    """With the password in it: it must reach no child and no log."""
    return f"unix://:{quote(password, safe='')}@{quote(str(path))}"
