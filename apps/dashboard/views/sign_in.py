"""Signing in: by name and password, or by the link that the first start prints."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, UsernameField
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator

from apps.core import signin
from apps.core.address import address_of
from apps.core.full_disk import with_reserve
from apps.core.pace import Pace
from apps.dashboard.views.posted import unposted

MINUTE, HOUR, YEAR = 60, 3600, 365 * 24 * 3600  # s
KNOWN = settings.KNOWN_COOKIE_NAME
NAME = UsernameField(max_length=254)


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """The form. A password must not be found by trying, and trying must not keep its owner out.

    From one address there are ten tries a minute, of one name a hundred an hour: addresses are cheap. Strangers can use
    up the tries of a name or of an address that many share; so a browser in which this name signed in before, which
    a signed cookie proves, has ten a minute that nobody else can use up. In a new browser an owner may have to wait
    for as long as an attack lasts.
    """

    template_name = "dashboard/sign_in.html"
    redirect_authenticated_user = True
    by_address, by_name, by_browser = Pace(10, MINUTE), Pace(100, HOUR), Pace(10, MINUTE)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form. A part of a page that is asked for after the session has ended lands here too: the page must come as a
        whole, or its part would be replaced by a form."""
        if request.headers.get("HX-Request"):
            return HttpResponse(headers={"HX-Refresh": "true"})
        return super().get(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """429 for who tries too often. Without a password nothing is tried."""
        wait = self._wait() if request.POST.get("password") else 0
        if not wait:
            return super().post(request, *args, **kwargs)
        return _too_often(request, wait)

    @with_reserve
    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Who comes to make room on a full disk gets in."""
        answer = super().form_valid(form)
        secure = settings.SESSION_COOKIE_SECURE
        browser = secrets.token_urlsafe(16)
        answer.set_signed_cookie(
            KNOWN, browser, salt=self._name(), max_age=YEAR, secure=secure, httponly=True, samesite="Lax"
        )
        return answer

    def _wait(self) -> int:
        """Seconds until one should try again; 0 counts as a try."""
        name = self._name()
        if browser := self.request.get_signed_cookie(KNOWN, "", salt=name, max_age=YEAR):
            return 0 if self.by_browser.allows(browser) else MINUTE
        if not self.by_address.allows(address_of(self.request)):
            return MINUTE
        return 0 if self.by_name.allows(name) else HOUR

    def _name(self) -> str:
        """As the form reads it: other ways to write a name are no other name."""
        return str(NAME.to_python(self.request.POST.get("username", "")))[:254]


class Password(PasswordChangeView):
    """Another one, for who has one and knows it; ten tries a minute."""

    template_name = "dashboard/password.html"
    success_url = "/"
    by_user = Pace(10, MINUTE)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """429 for who tries too often."""
        if self.by_user.allows(str(request.user.pk)):
            return super().post(request, *args, **kwargs)
        return _too_often(request, MINUTE, "password")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        messages.success(self.request, "Your password is another one now; other browsers are signed out.")
        return super().form_valid(form)


class SignOut(LogoutView):
    """By its button. What was not read yet is for nobody else."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        list(messages.get_messages(request))
        return super().post(request, *args, **kwargs)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return unposted(request)


def _too_often(request: HttpRequest, wait: int, where: str = "login") -> HttpResponse:
    refusal = render(request, "dashboard/too_often.html", {"wait": wait, "where": where}, status=429)
    refusal["Retry-After"] = str(wait)
    return refusal


@login_not_required
def by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Works once. A look ahead by HEAD does not use the link up."""
    if request.method != "GET":
        return HttpResponse(status=405)
    user = signin.redeem(token)
    if user is None:
        return render(request, "dashboard/link_used.html", status=403)
    with_reserve(login)(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("home")
