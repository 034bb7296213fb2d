"""From which pages the site may be asked; a page that may not learns why."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.generic.websocket import AsyncWebsocketConsumer
from channels.security.websocket import OriginValidator
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.shortcuts import render

FOREIGN = 4403


class Origins(OriginValidator):  # type: ignore[misc]  # channels has no types
    """Lines of pages of the site itself, as Django takes forms: of the host that is asked, where that is one of ALLOWED_HOSTS,
    or of ORIGINS. The site is behind other names and ports than its own where somebody forwards it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        headers = dict(scope.get("headers", ()))
        origin, host = (headers.get(name, b"").decode("latin1") for name in (b"origin", b"host"))
        if own(origin, host) or self.valid_origin(urlsplit(origin) if origin else None):
            return await self.application(scope, receive, send)
        return await Refusing.as_asgi()(scope, receive, send)


class Refusing(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Says that it does: a page learns no reason of a handshake that was refused."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(FOREIGN)


def own(origin: str, host: str) -> bool:
    """Whether a page of that origin is one of the host that it asks."""
    scheme, netloc, *_ = urlsplit(origin)
    if scheme not in (("https",) if settings.TLS else ("http", "https")) or netloc != host:
        return False
    return validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)


def refused_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """For Django's CSRF_FAILURE_VIEW."""
    foreign = request.headers.get("Origin", "") if reason.startswith("Origin checking failed") else ""
    context = {"foreign": foreign, "encrypted": foreign.startswith("https:") and not settings.TLS}
    return render(request, "403_csrf.html", context, status=403)
