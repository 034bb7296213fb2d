"""From which pages the site may be asked; a page that may not learns why."""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, urlsplit

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
        if own(origin, host) or self.valid_origin(parts(origin)):
            return await self.application(scope, receive, send)
        return await Refusing.as_asgi()(scope, receive, send)


class Refusing(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Says that it does: a page learns no reason of a handshake that was refused."""

    channel_layer_alias = None  # see `RunConsumer`

    async def connect(self) -> None:
        await self.accept()
        await self.close(FOREIGN)


def parts(origin: str) -> SplitResult | None:
    """None for what is no address of a page."""
    try:
        found = urlsplit(origin)
        _ = found.port  # which is looked at when it is asked for, here and by Channels
    except ValueError:
        return None
    return found if found.scheme in ("http", "https") and found.netloc else None


def own(origin: str, host: str) -> bool:
    """Whether a page of that origin is one of the host that it asks."""
    found = parts(origin)
    if found is None or found.scheme != ("https" if settings.TLS else "http") or found.netloc != host:
        return False
    return validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)


def refused_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """For Django's CSRF_FAILURE_VIEW; in one sentence for a script that asks."""
    origin = request.headers.get("Origin", "") if reason.startswith("Origin checking failed") else ""
    title = "This page was too old"
    what = "It was opened before you last signed in, or this browser keeps no cookies for this site"
    next_step = "go back, reload the page and try again"
    if parts(origin):
        title, what = "This form came from elsewhere", f"The site takes none from {origin}"
        tls = " and TLS=1" if origin.startswith("https:") and not settings.TLS else ""
        next_step = (
            f"if that is the address at which you opened the site, have who runs it start it with ORIGINS={origin}{tls}; if it "
            "is not, another page tried to send a form in your name"
        )
    if "X-Requested-With" in request.headers or "HX-Request" in request.headers:
        return HttpResponse(f"{what}. Next step: {next_step}.", content_type="text/plain", status=403)
    context = {"title": title, "what": what, "next_step": next_step}
    return render(request, "403_csrf.html", context, status=403)
