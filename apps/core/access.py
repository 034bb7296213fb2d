"""Fetching and the permission check are one step: what is somebody else's does not exist."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404

_Row = TypeVar("_Row", bound=Model)


def owned(rows: QuerySet[_Row], user: Any, **lookup: Any) -> _Row:
    """The one row of this user; raises Http404 for none, another's, and anonymous users."""
    found = rows.filter(owner_id=user.pk, **lookup).first() if user.pk is not None else None
    if found is None:
        raise Http404
    return found
