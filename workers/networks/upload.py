"""An uploaded file before anything in it is read."""

from __future__ import annotations

import stat
from pathlib import Path

from workers.networks.errors import NetworkError


def check_file(path: Path, extension: str, most: int) -> int:
    """Bytes of the file, `most` at most; raises NetworkError for what is no plain file of that extension."""
    if path.suffix.lower() != extension:
        raise NetworkError(path.name, f"only {extension} files are read here", "export the network to ONNX")
    try:
        status = path.stat()
    except OSError as error:
        raise NetworkError(path.name, f"it cannot be read ({error.strerror})", "upload it again") from error
    if not stat.S_ISREG(status.st_mode):
        raise NetworkError(path.name, "this is not a file", f"upload the {extension} file itself")
    if status.st_size > most:
        raise NetworkError(path.name, f"it has {status.st_size} bytes, {most} are allowed", "use a smaller network")
    return status.st_size
