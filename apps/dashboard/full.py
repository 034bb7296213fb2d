"""An account without room is told so before its upload is read, by what the request says of its length."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from apps.core.errors import Refused
from apps.dashboard.views.networks import refused
from apps.tuning import quota

FORM = 1 << 16
"""Bytes of a request that may be something else than the file."""


class FullAccount(MiddlewareMixin):
    """Before forms are checked: for that Django takes the whole body apart."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.method != "POST" or not request.path.startswith(settings.UPLOAD_PATHS):
            return None
        length = request.META.get("CONTENT_LENGTH") or ""
        try:
            _check(request.user, int(length) if length.isdecimal() else 0)
        except Refused as error:
            return refused(request, error)
        return None


def refusal(session: str, length: int) -> str:
    """Why an upload of so many bytes in the session of that key is refused; empty where it is not, or who sends it is nobody.

    For the server, which asks in a thread of its own as soon as it has the head of a request.
    """
    if length <= FORM:
        return ""
    request: Any = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session)
    try:
        _check(get_user(request), length)
    except Refused as error:
        return error.sentence
    finally:
        connections.close_all()
    return ""


def _check(user: Any, length: int) -> None:
    if length > FORM and user.is_authenticated:
        quota.check(user, "this upload", length - FORM)
