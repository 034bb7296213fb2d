"""From which pages the site may be asked: forms and websockets alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from channels.security.websocket import OriginValidator
from django.test import Client

from tests.running import ROOT

PRINT = "from tuningsite import settings as s; import json; print(json.dumps([s.ORIGINS, s.CSRF_TRUSTED_ORIGINS]))"
MINE = ("https://example.org", "https://a.example.org", "https://b.a.example.org")
OTHERS = ("https://example.com", "https://evilexample.org", "http://a.example.org", "https://a.example.org:8443")


def origins(data: Path, **environment: str) -> tuple[list[str], list[str]]:
    """Of websockets and of forms, as the site has them behind TLS."""
    names = {**os.environ, "DATA_DIR": str(data), "TLS": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", PRINT], env=names, cwd=ROOT, capture_output=True, text=True, check=True
    )
    sockets, forms = json.loads(done.stdout)
    return sockets, forms


@pytest.mark.django_db
@pytest.mark.parametrize("environment", [{"ALLOWED_HOSTS": ".example.org"}, {"ORIGINS": "https://.example.org"}])
def test_a_name_with_a_dot_stands_for_all_beneath_it(tmp_path: Path, settings, environment) -> None:
    sockets, settings.CSRF_TRUSTED_ORIGINS = origins(tmp_path, **environment)
    settings.ALLOWED_HOSTS = [".example.org"]
    asked = OriginValidator(None, sockets)
    assert [asked.valid_origin(urlsplit(origin)) for origin in (*MINE, *OTHERS)] == [True] * 3 + [False] * 4
    browser = Client(enforce_csrf_checks=True, headers={"Host": "example.org"})
    token = browser.get("/login/").cookies[settings.CSRF_COOKIE_NAME].value
    form = {"username": "ada", "password": "wrong", "csrfmiddlewaretoken": token}
    answers = [browser.post("/login/", form, headers={"Origin": origin}).status_code for origin in (*MINE, *OTHERS)]
    assert answers == [200] * 3 + [403] * 4


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("origin", "said"), [("https://tuning.example.org", " and TLS=1"), ("http://localhost:9000", "")]
)
def test_a_form_from_another_address_is_told_what_the_site_is_to_be_started_with(
    settings, origin: str, said: str
) -> None:
    browser = Client(enforce_csrf_checks=True, headers={"Host": "localhost"})
    form = {"csrfmiddlewaretoken": browser.get("/login/").cookies[settings.CSRF_COOKIE_NAME].value}
    refused = browser.post("/login/", form, headers={"Origin": origin})
    assert refused.status_code == 403
    sentence = f"have who runs it start it with ORIGINS={origin}{said}; if it is not, another page tried"
    assert sentence in refused.content.decode()
    heard = browser.post("/login/", form, headers={"Origin": origin, "X-Requested-With": "XMLHttpRequest"})
    assert heard.headers["Content-Type"] == "text/plain"
    assert heard.content.decode().startswith(f"The site takes none from {origin}. Next step: if that is the address")
    for nowhere in ("null", "http://[", "http://a:99999", "http://a:b"):
        assert "ORIGINS" not in browser.post("/login/", form, headers={"Origin": nowhere}).content.decode()
    old = browser.post("/login/", {"csrfmiddlewaretoken": "old"}, headers={"Origin": "http://localhost"})
    assert "This page was too old" in old.content.decode()
