"""A site of real processes, prepared for those that a test starts."""

from tests.running import site

__all__ = ["site"]
