"""Whose session a cookie names, on every database."""

from __future__ import annotations

import pytest

from apps.core.access import user_of


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["abcdefgh\0ij", "abcdefgh/../i", "äbcdefghij", ""])
def test_a_name_that_no_session_has_is_nobodys(key: str) -> None:
    assert user_of(key).pk is None
