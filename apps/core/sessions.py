"""Sessions in the database, asked for by names that Django gives: PostgreSQL breaks at others."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import db


class SessionStore(db.SessionStore):
    """As Django's."""

    def _validate_session_key(self, key: Any) -> bool:
        return bool(super()._validate_session_key(key) and key.isascii() and key.isalnum())  # type: ignore[misc]
