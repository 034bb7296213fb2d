"""Who uses the site stays signed in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.base import UpdateError
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from apps.core import clock

EVERY = 24 * 3600.0  # s; at every request, as Django can do it, each page that polls would write to the database
RENEWED = "renewed"


class RenewedSessions(MiddlewareMixin):
    """Has a session that is in use end two weeks after its last day, not after its first."""

    def process_request(self, request: HttpRequest) -> None:
        session: Any = request.session
        if SESSION_KEY in session and clock.now().timestamp() - session.get(RENEWED, 0.0) >= EVERY:
            renew(request)
            try:
                session.save()
            except UpdateError:  # as on a full disk, where Storage has to open: it stays as long as it had to
                session.modified = False


@receiver(user_logged_in, dispatch_uid="a session begins")
def renew(request: HttpRequest, **_: Any) -> None:
    """What was changed is saved with the answer, and its cookie sent anew."""
    request.session[RENEWED] = clock.now().timestamp()
