"""What a test needs of the kernel, and is skipped without; in CI it fails where KERNEL=whole says that nothing is missing."""

from __future__ import annotations

import os

import pytest

from workers.sandbox import landlock, seccomp

WHOLE = os.environ.get("CI") == "true" and os.environ.get("KERNEL") == "whole"
LACKS = {
    "landlock": (landlock.supported() < 1, "this kernel offers no Landlock"),
    "tcp": (landlock.supported() < 4, "this kernel's Landlock knows no TCP"),
    "scopes": (
        landlock.supported() < landlock.SCOPED,
        "this kernel's Landlock knows no scopes, which conversions need",
    ),
    "filter": (not seccomp.supported(), "this kernel filters no system calls"),
}


def needs(feature: str) -> pytest.MarkDecorator:
    lacks, reason = LACKS[feature]
    return pytest.mark.skipif(lacks and not WHOLE, reason=reason)
