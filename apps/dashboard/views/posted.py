"""Addresses that only a button sends something to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

BACK = {
    "ask": ("run", "the run"),
    "compile": ("run", "the run"),
    "take-baselines": ("run", "the run"),
    "delete-network": ("network", "the network"),
    "delete-library": ("storage", "the storage"),
    "remeasure": ("targets", "the targets"),
    "add-device": ("targets", "the targets"),
    "remove-device": ("targets", "the targets"),
}
"""By the name of an address: where its button is, of the same key where it has one."""


def by_button(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """As Django's require_POST, with a page for who comes to the address by hand, or after signing in."""

    @wraps(view)
    def posted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return view(request, *args, **kwargs) if request.method == "POST" else unposted(request)

    return posted


def unposted(request: HttpRequest) -> HttpResponse:
    found = request.resolver_match
    name, where = BACK.get(found.url_name or "" if found else "", ("home", "the runs"))
    keys = [found.kwargs["pk"]] if found and name in ("run", "network") else []
    answer = render(request, "dashboard/by_button.html", {"back": reverse(name, args=keys), "where": where}, status=405)
    answer["Allow"] = "POST"
    return answer
