"""Uploads before their view: who may send one, and a disk that does not take it.

After that the view says how often an account may (paces), and the transaction that keeps a network how much it may keep
(tuning.quota).
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from apps.core.access import user_of
from apps.core.errors import Refused
from apps.core.full_disk import unwritten
from apps.dashboard.views.networks import refused
from apps.tuning import quota


def judged(session: str, length: int) -> tuple[Any, Refused | None]:
    """The account that the session of this key is signed in to, None for nobody's, and why it may not upload so many bytes.

    For the server, which asks in a thread of its own as soon as it has the head of a request. Raises DatabaseError.
    """
    try:
        user = user_of(session)
        if not user.is_authenticated:
            return None, None
        quota.check(user, "this upload", length - settings.UPLOAD_FORM)
        return user.pk, None
    except Refused as error:
        return user.pk, error
    finally:
        connections.close_all()


class UnkeptFiles(MiddlewareMixin):
    """Has forms taken apart before the check of their tokens does it, which would break where a file cannot be kept."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.method == "POST":
            try:
                _ = request.POST
            except OSError as error:
                reason = f"it cannot be taken ({error.strerror or error})"
                next_step = "give the file a shorter name, or make room on the server's disk, then try again"
                return refused(request, unwritten(error)("this upload", reason, next_step))
        return None
