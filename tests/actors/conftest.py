"""A site of real processes, prepared for those that a test starts."""

from tests.operations.running import site

__all__ = ["site"]
