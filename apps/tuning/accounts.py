"""What an account has is counted by one at a time."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model


def lock_account(pk: Any) -> None:
    """Inside a transaction, before the account's rows are counted: of two that come at once the second waits until the first is
    over, and counts it. Rows that refer to the account can be added meanwhile."""
    get_user_model().objects.select_for_update(no_key=True).filter(pk=pk).first()
