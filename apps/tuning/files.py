"""Archives that children leave in their own directories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.core.content import Stored, keep

_CHUNK = 1 << 20


def keep_archive(archive: str, work_dir: Path, folder: Path) -> Stored:
    """Copies a child's archive. Raises ValueError for a path that is not a plain file of the child's own directory."""
    path = Path(archive)
    real = path.resolve()
    if path.is_symlink() or not real.is_relative_to(work_dir.resolve()) or not real.is_file():
        raise ValueError(f"the archive {archive!r} is no file of the job's own directory")
    return keep(_chunks(real), folder, ".zip")


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
