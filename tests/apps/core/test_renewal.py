"""Who uses the site stays signed in; pages that poll write nothing meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.core import clock

pytestmark = pytest.mark.django_db
PAGE = "/storage/"
DAY = timedelta(days=1)


@pytest.fixture
def browser(data_dir: Any) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_user("ada"))
    return client


def at(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    """That is the time, for the site and for what keeps its sessions."""
    for name in ("apps.core.clock.now", "django.utils.timezone.now"):
        monkeypatch.setattr(name, lambda: now)


def test_a_session_that_is_used_does_not_end(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    began = clock.now()
    for days in (10, 20, 30, 40):
        at(monkeypatch, began + days * DAY)
        answer = browser.get(PAGE)
        assert answer.status_code == 200
        assert answer.cookies[settings.SESSION_COOKIE_NAME]["max-age"] == 14 * 24 * 3600
    at(monkeypatch, began + 55 * DAY)
    assert browser.get(PAGE)["Location"].startswith("/login/")


def test_it_is_written_once_a_day_however_often_a_page_asks(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    began = clock.now()
    for hours in (0, 1, 23):
        at(monkeypatch, began + timedelta(hours=hours))
        with CaptureQueriesContext(connection) as asked:
            assert settings.SESSION_COOKIE_NAME not in browser.get(PAGE).cookies
        assert not [query["sql"] for query in asked if not query["sql"].startswith("SELECT")]
    at(monkeypatch, began + timedelta(hours=25))
    assert settings.SESSION_COOKIE_NAME in browser.get(PAGE).cookies


def test_who_is_not_signed_in_gets_no_session(data_dir: Any) -> None:
    assert Client().get("/login/").status_code == 200
    assert not Session.objects.exists()
