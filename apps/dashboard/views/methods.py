"""What each method does."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.tuning import methods
from workers.messages.methods import GROUPS, Preset


@require_GET
def methods_page(request: HttpRequest) -> HttpResponse:
    groups = [
        {"group": group, "methods": [{"preset": preset, "rows": _rows(preset)} for preset in group.methods]}
        for group in GROUPS
    ]
    told = [(role, methods.ROLES[role], parts) for role, parts in methods.PARTS.items()]
    told += [(name, title, parts) for name, (title, parts) in methods.VALUES.items()]
    roles = [{"role": role, "title": title, "parts": parts} for role, title, parts in told]
    return render(request, "dashboard/methods.html", {"groups": groups, "roles": roles})


def _rows(preset: Preset) -> list[dict[str, object]]:
    """A row a role: its part, and the numbers that the method sets."""
    return [
        {
            "role": role,
            "title": title,
            "part": preset.parts.get(role, role),
            "own": any(one.name == preset.parts.get(role, role) and one.numbers for one in methods.PARTS[role]),
            "numbers": [number for number in preset.numbers if number.role == role],
        }
        for role, title in methods.ROLES.items()
    ]
