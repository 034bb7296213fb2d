"""The site's secret key: generated once, readable by its owner only."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.core.errors import ANOTHERS


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
        except OSError:  # a file system without links
            with _alone_in(path.parent):
                if not path.exists():
                    partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    try:
        return path.read_text().strip()
    except PermissionError:  # of a site that root started once
        raise SystemExit(ANOTHERS.format(file=path, folder=path.parent)) from None
