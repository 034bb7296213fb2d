"""How a service says that the user asked for something that cannot be."""

from __future__ import annotations

from http import HTTPStatus

LONGEST = 200
"""Letters of a value: it may be all that a form brought, and what is said of it is kept until somebody reads it."""

ANOTHERS = (
    "{file} is another user's. Next step: start the site as the one that it belongs to, or hand over all of {folder} "
    "(chown -R)."
)
"""Of a file that this user may not open."""


class Refused(Exception):
    """A user's mistake: the bad value, the reason, and what to do next. Nothing was changed. `status` is of an answer
    that says no more."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, value: object, reason: str, next_step: str) -> None:
        text = str(value)
        self.value = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        super().__init__(f"{self.value}: {reason}; {next_step}")
        self.reason = reason
        self.next_step = next_step

    @property
    def sentence(self) -> str:
        """For a page."""
        return f"{self.value}: {self.reason}. Next step: {self.next_step}."


class TooBig(Refused):
    """More at once than is taken."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class TooOften(Refused):
    """More in a while than is taken."""

    status = HTTPStatus.TOO_MANY_REQUESTS


class NoRoom(Refused):
    """An account, or the site's disk, is too full for what it should keep."""

    status = HTTPStatus.INSUFFICIENT_STORAGE
