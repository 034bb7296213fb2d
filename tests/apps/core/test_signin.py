import os
import stat
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from apps.core import signin
from apps.core.clock import now

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_directory(data_dir):
    pass


def test_a_new_site_gets_one_user_and_keeps_it():
    user = signin.single_user()
    assert user == signin.single_user()
    assert not user.has_usable_password()


def test_a_link_works_once():
    user = signin.single_user()
    token = signin.issue(user)
    assert signin.redeem("x" * 43) is None
    assert signin.redeem(token) == user
    assert signin.redeem(token) is None


def test_a_link_expires_and_a_new_one_voids_it():
    user = signin.single_user()
    token = signin.issue(user)
    assert signin.redeem(token, lambda: now() + timedelta(minutes=signin.MINUTES, seconds=1)) is None
    old = signin.issue(user)
    new = signin.issue(user)
    assert signin.redeem(old) is None
    assert signin.redeem(new) == user
    gone = signin.issue(user)
    signin.revoke()
    assert signin.redeem(gone) is None


def test_only_its_hash_is_kept_where_only_we_read(data_dir):
    token = signin.issue(signin.single_user())
    kept = data_dir / "sign_in"
    assert token not in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.skipif(os.getuid() != 0, reason="this is not root")
def test_a_link_that_root_made_is_whom_the_directory_belongs_to(data_dir):
    os.chown(data_dir, 65533, -1)
    user = signin.single_user()
    token = signin.issue(user)
    assert (data_dir / "sign_in").stat().st_uid == 65533
    assert signin.redeem(token) == user


def test_a_site_with_accounts_or_a_password_gives_no_link():
    user = signin.single_user()
    user.set_password("a password of some length")
    user.save()
    assert signin.single_user() is None
    user.delete()
    get_user_model().objects.create_user("somebody", password="a password of some length")
    assert signin.single_user() is None
    assert not get_user_model().objects.filter(username=signin.NAME).exists()


@pytest.mark.parametrize(("page", "status"), [("/login/", 200), ("/login/used/", 403)])
def test_who_has_no_link_any_more_is_told_how_to_get_another(page, status):
    answer = Client().get(page)
    assert answer.status_code == status
    assert "manage.py link" in answer.content.decode()
