"""What broke on the site's side, and what no page answers."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import bad_request, server_error

from apps.core.full_disk import is_full, refusal

LONGEST = 260


def broken(request: HttpRequest) -> HttpResponse:
    """While the error is handled, wherever it was raised. A full disk has its own page, and a button of a page its own word."""
    if is_full(sys.exc_info()[1]):
        if request.headers.get("HX-Request"):
            return HttpResponse(refusal().sentence, content_type="text/plain", status=507)
        return HttpResponse(render_to_string("507.html"), status=507)
    return server_error(request)


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A host that is none of ALLOWED_HOSTS has its own page; without the request, of which no template may ask the host."""
    if not isinstance(exception, DisallowedHost):
        return bad_request(request, exception)
    try:
        host = urlsplit(f"//{request.META.get('HTTP_HOST', '')}"[:LONGEST]).hostname or "no name"
    except ValueError:  # a bracket without its fellow
        host = "no name"
    host = f"[{host}]" if ":" in host else host
    return HttpResponse(render_to_string("host.html", {"host": host}), status=400)
