"""Signing in: by name and password, or by the link that the first start prints."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from apps.core import signin
from apps.core.pace import Pace

TRIES = 10  # a minute, from one address


@method_decorator([login_not_required, never_cache], name="dispatch")
class SignIn(LoginView):
    """The form."""

    template_name = "dashboard/sign_in.html"
    redirect_authenticated_user = True
    pace = Pace(TRIES, 60.0)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """429 for who tries too often: a password must not be found by trying."""
        if self.pace.allows(request.META.get("REMOTE_ADDR", "")):
            return super().post(request, *args, **kwargs)
        refusal = render(request, "dashboard/too_often.html", status=429)
        refusal["Retry-After"] = "60"
        return refusal


@login_not_required
@never_cache
def by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Works once. A look ahead by HEAD does not use the link up."""
    if request.method != "GET":
        return HttpResponse(status=405)
    user = signin.redeem(token)
    if user is None:
        return render(request, "dashboard/link_used.html", status=403)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("home")
