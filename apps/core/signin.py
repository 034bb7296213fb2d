"""The link with which the single user of a site signs in: valid once, ten minutes, and only the newest.

What is kept is the hash of its token, in a file that only the site can read; whoever takes the file away has used the link.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model

from apps.core.clock import now

if TYPE_CHECKING:
    from django.contrib.auth.models import User

NAME = "owner"
MINUTES = 10


def _path() -> Path:
    return Path(settings.DATA_DIR) / "sign_in"


def single_user() -> User | None:
    """The one who gets a link: made on the first start; None when the site has other accounts or it has a password."""
    users = get_user_model().objects.filter(is_active=True)
    user = users.filter(username=NAME).first()
    if user is None and not users.exists():
        user = get_user_model().objects.create_user(NAME, is_staff=True, is_superuser=True)
    if user is None or user.has_usable_password() or users.count() > 1:
        return None
    return user


def issue(user: User) -> str:
    """A new token for this user; earlier ones are void."""
    token = secrets.token_urlsafe(32)
    expires = now() + timedelta(minutes=MINUTES)
    content = json.dumps({"hash": _hash(token), "user": user.pk, "expires": expires.timestamp()})
    partial = _path().with_name(f"sign_in.{os.getpid()}")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
        with suppress(OSError):  # only root may, and only what root made is another's
            os.fchown(file.fileno(), _path().parent.stat().st_uid, -1)
    partial.replace(_path())
    return token


def redeem(token: str, clock: Callable[[], datetime] = now) -> User | None:
    """The user whose token this is; the same token never works again. None for a wrong, used or expired one."""
    try:
        kept = json.loads(_path().read_text())
    except (OSError, ValueError):
        return None
    if not hmac.compare_digest(kept["hash"], _hash(token)):
        return None
    try:
        _path().unlink()  # of two that come at once, one finds it gone
    except FileNotFoundError:
        return None
    if clock().timestamp() > kept["expires"]:
        return None
    return get_user_model().objects.filter(pk=kept["user"], is_active=True).first()


def revoke() -> None:
    """Voids a link that was not used."""
    with suppress(FileNotFoundError):
        _path().unlink()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
