"""Lines of a log, which may be read or sent elsewhere while a link to sign in still works: its token is in none of them."""

from __future__ import annotations

import logging
import re

_LINK = re.compile(r"(?<=/login/)[^/?\s\"']+")


def without_token(text: str) -> str:
    return _LINK.sub("...", text)


class Lines(logging.Formatter):
    """For LOGGING: Django names the path of a request that it refuses."""

    def format(self, record: logging.LogRecord) -> str:
        return without_token(super().format(record))
