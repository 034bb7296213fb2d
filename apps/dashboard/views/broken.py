"""What broke on the site's side."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from apps.core.full_disk import is_full


def broken(request: HttpRequest) -> HttpResponse:
    """While the error is handled, wherever it was raised. A full disk has its own page."""
    if is_full(sys.exc_info()[1]):
        return HttpResponse(render_to_string("507.html"), status=507)
    return server_error(request)
