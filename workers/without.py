"""Importing a package as if others, which it takes along where it finds them, were not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(*packages: str) -> Iterator[None]:
    """Inside, importing one of `packages` that is not loaded yet fails as if it were not installed; afterwards it may come."""
    hidden = [package for package in packages if package not in sys.modules]
    for package in hidden:
        sys.modules[package] = None  # type: ignore[assignment]  # Python's own sign for "not to be found"
    try:
        yield
    finally:
        for package in hidden:
            del sys.modules[package]
