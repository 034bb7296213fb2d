"""The site's secret key: generated once, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def secret_key(path: Path) -> str:
    """Reads the key, or makes it; processes that start together agree on one. Raises OSError without room or rights."""
    if not path.exists():
        partial = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(partial, path)  # unlike a rename this does not replace another process's key
        except FileExistsError:
            pass
        finally:
            partial.unlink()
    return path.read_text().strip()
