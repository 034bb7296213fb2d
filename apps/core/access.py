"""Fetching and the permission check are one step: what is somebody else's does not exist."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import get_user
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

_Row = TypeVar("_Row", bound=Model)


def owned(rows: QuerySet[_Row], user: Any, **lookup: Any) -> _Row:
    """The one row of this user; raises Http404 for none, another's, and anonymous users."""
    found = rows.filter(owner_id=user.pk, **lookup).first() if user.pk is not None else None
    if found is None:
        raise Http404
    return found


def user_of(session_key: str | None) -> Any:
    """Who is signed in to that session now, as the database has it; anonymous for nobody's."""
    request: Any = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return get_user(request)
