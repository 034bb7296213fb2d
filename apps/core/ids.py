"""Identifiers."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any


def new_id() -> uuid.UUID:
    """Random, so that nobody can guess another's."""
    return uuid.uuid4()


def digest(*parts: Any) -> str:
    """32 hexadecimal digits of JSON values: equal values, equal digest."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
