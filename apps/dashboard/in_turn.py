"""Where an answer can take seconds, each account has a few at a time: who asks for twenty keeps nobody else waiting."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.db import DatabaseError
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve

from apps.core.access import user_of
from apps.core.errors import Refused
from apps.core.session_cookie import session_of
from apps.core.turns import Turns

PATIENCE = 30.0  # s
PAGES = Turns(2)
DOWNLOADS = Turns(3)
"""For as long as the client takes one: of their own, or nobody could look at a run meanwhile."""
TURNS = {
    **dict.fromkeys(
        ("networks", "run", "snapshot", "operator", "compared", "compared-table", "network", "new-run"), PAGES
    ),
    **dict.fromkeys(("run-file", "operator-table", "artifact"), DOWNLOADS),
}
"""By the names of addresses."""
FORMS = {"network", "new-run"}
"""Those that answer what is sent there with their page; of an upload the server counts how many arrive."""
CROWDED = Refused(
    "this request",
    "what your account asked for before is not done yet",
    "wait until some of its pages and downloads are done, then try again",
)


class InTurn:
    """Answers with `pages`, or 429 when that is too long in coming."""

    def __init__(self, pages: Any) -> None:
        self._pages = pages

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async with AsyncExitStack() as held:
            turns = _turns(scope)
            cookies = (value for name, value in scope["headers"] if name == b"cookie")
            account = await _account(session_of(cookies)) if turns else None
            if turns and account is not None:
                try:
                    await held.enter_async_context(turns.of(account, PATIENCE))
                except TimeoutError:
                    await _refuse(scope, send)
                    return

            async def made(message: Any) -> None:
                if turns is PAGES:  # it is made by now: how long a client takes to read it is nobody's turn
                    await held.aclose()
                await send(message)

            await self._pages(scope, receive, made)


def _turns(scope: Any) -> Turns | None:
    """None for what is made at once, and for what another method refuses."""
    try:
        name, method = resolve(scope["path"]).url_name or "", scope["method"].upper()
    except Resolver404:
        return None
    return TURNS.get(name) if method == "GET" or (method == "POST" and name in FORMS) else None


def _user(session: str) -> Any:
    """The key of an account, None for nobody's session; without its database the site says so behind no turn."""
    try:
        return user_of(session).pk if session else None
    except DatabaseError:
        return None


_account = database_sync_to_async(_user, thread_sensitive=False)


async def _refuse(scope: Any, send: Any) -> None:
    """As a page for who opened one, in words for a page's script."""
    page = any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])
    kind, told = (b"text/html; charset=utf-8", await _page()) if page else (b"text/plain", f"{CROWDED.sentence}\n")
    headers = [
        (b"content-type", kind),
        (b"cache-control", b"no-store"),
        (b"retry-after", b"%d" % PATIENCE),
        # As the middleware, which is not asked here, gives every page.
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
    ]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": told.encode()})


@sync_to_async(thread_sensitive=False)
def _page() -> str:
    return render_to_string("429.html", {"refusal": CROWDED})
