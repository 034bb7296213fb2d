"""Who tries passwords must wait; who knows theirs gets in all the same."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.core.pace import Pace
from apps.dashboard.views.sign_in import KNOWN, Password, SignIn
from tests.apps.rows import Site

WRONG = {"username": "ada", "password": "no"}
RIGHT = {"username": "ada", "password": "a long password"}


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries of this test's own: three from an address, five of a name, two in a browser that is known."""
    for name, tries, seconds in (("by_address", 3, 60.0), ("by_name", 5, 3600.0), ("by_browser", 2, 60.0)):
        monkeypatch.setattr(SignIn, name, Pace(tries, seconds))


def tried(form: dict[str, str], browser: Client | None = None, **meta: Any) -> int:
    return (browser or Client()).post("/login/", form, **meta).status_code


def used_up() -> None:
    """The tries of a name, by strangers of many addresses."""
    assert [tried(WRONG, REMOTE_ADDR=f"203.0.113.{n}") for n in range(6)][-1] == 429


def test_from_one_address_there_may_be_so_many_tries(site: Site) -> None:
    assert [tried({**WRONG, "username": f"name{n}"}) for n in range(4)] == [200, 200, 200, 429]
    answer = Client().post("/login/", RIGHT)
    assert (answer.status_code, answer["Retry-After"]) == (429, "60")
    assert "wait 1 min" in answer.content.decode()
    assert Client().get("/login/").status_code == 200
    assert tried(RIGHT, REMOTE_ADDR="203.0.113.9") == 302


def test_of_one_name_there_may_be_so_many_tries_from_wherever(site: Site) -> None:
    used_up()
    for written in ("ada", " ada ", "\uff41\uff44\uff41"):  # the form takes them for one name
        answer = Client(REMOTE_ADDR="198.51.100.7").post("/login/", {**RIGHT, "username": written})
        assert (answer.status_code, answer["Retry-After"]) == (429, "3600")
    assert "wait 1 h" in answer.content.decode()
    assert tried({**RIGHT, "username": "bob"}, REMOTE_ADDR="198.51.100.8") == 302


def test_a_form_without_a_password_is_no_try(site: Site) -> None:
    nothing = [{**WRONG, "password": ""}, {"username": "ada"}]
    assert [tried(form) for form in nothing * 3] == [200] * 6
    assert not SignIn.by_address._seen
    assert not SignIn.by_name._seen


def test_strangers_cannot_lock_a_browser_out_in_which_the_name_signed_in_before(site: Site) -> None:
    home = Client()
    assert tried(RIGHT, home) == 302
    home.post("/logout/")
    used_up()
    assert [tried({**WRONG, "username": f"name{n}"}) for n in range(4)][-1] == 429  # from this address too
    assert tried(RIGHT, home) == 302


def test_a_browser_that_is_known_has_no_more_tries_than_others_and_none_for_another_name(site: Site) -> None:
    home = Client()
    assert tried({**RIGHT, "username": "bob"}, home) == 302
    home.post("/logout/")
    used_up()
    assert tried(RIGHT, home, REMOTE_ADDR="198.51.100.7") == 429
    assert [tried({**WRONG, "username": "bob"}, home) for _ in range(3)] == [200, 200, 429]


def test_nobody_can_say_of_themselves_that_they_are_known(site: Site) -> None:
    forger = Client()
    forger.cookies[KNOWN] = "browser:1sxyzA:c2lnbmF0dXJl"
    used_up()
    assert tried(RIGHT, forger, REMOTE_ADDR="198.51.100.7") == 429


def test_behind_the_proxy_one_address_does_not_use_up_the_tries_of_others(site: Site, settings: Any) -> None:
    settings.TLS = True
    forms = [{**WRONG, "username": f"name{n}"} for n in range(4)]
    told = [f"192.0.2.{n}, 203.0.113.5" for n in range(4)]  # the first entries are the stranger's own
    answers = [tried(form, HTTP_X_FORWARDED_FOR=entries) for form, entries in zip(forms, told, strict=True)]
    assert answers == [200, 200, 200, 429]
    assert tried(RIGHT, HTTP_X_FORWARDED_FOR="198.51.100.7") == 302


def test_a_long_name_is_not_kept_whole(site: Site) -> None:
    assert tried({**WRONG, "username": "x" * 10_000}) == 200
    assert max(len(name) for name in SignIn.by_name._seen) == 254


def test_the_cookie_of_a_known_browser_is_for_no_script(site: Site) -> None:
    home = Client()
    tried(RIGHT, home)
    cookie = home.cookies[KNOWN]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_a_password_is_changed_by_who_knows_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Password, "by_user", Pace(3, 60.0))
    here, elsewhere = Client(), Client()
    assert Client().get("/password/").status_code == 302
    assert [tried(RIGHT, one) for one in (here, elsewhere)] == [302, 302]
    assert 'href="/password/"' in here.get("/storage/").content.decode()
    new = {"new_password1": "another long one", "new_password2": "another long one"}
    refused = here.post("/password/", {"old_password": "no", **new})
    assert (refused.status_code, "The password is the one it was" in refused.content.decode()) == (200, True)
    differing = here.post("/password/", {"old_password": RIGHT["password"], **new, "new_password2": "an other"})
    assert differing.status_code == 200
    changed = here.post("/password/", {"old_password": RIGHT["password"], **new}, follow=True)
    assert "other browsers are signed out" in changed.content.decode()
    assert elsewhere.get("/").status_code == 302
    assert here.post("/password/", {"old_password": "no", **new}).status_code == 429
    assert tried(RIGHT, REMOTE_ADDR="203.0.113.5") == 200
    assert tried({**RIGHT, "password": new["new_password1"]}, REMOTE_ADDR="203.0.113.5") == 302


def test_who_signs_in_by_links_has_no_password_to_change(site: Site) -> None:
    site.ada.set_unusable_password()
    site.ada.save()
    browser = Client()
    browser.force_login(site.ada)
    assert 'href="/password/"' not in browser.get("/storage/").content.decode()
