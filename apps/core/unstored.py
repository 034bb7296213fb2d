"""What may be kept of the site's answers on their way: nothing."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin


class Unstored(MiddlewareMixin):
    """Pages and downloads are of who is signed in: after signing out the browser's Back must not show them again.

    Styles and scripts are everybody's, and answered before it is asked.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers["Cache-Control"] = "private, no-store"
        return response
