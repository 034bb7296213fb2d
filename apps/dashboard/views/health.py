"""Whether the site is well, for whoever watches it: without a session, and nothing of what is in it."""

from __future__ import annotations

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse

from apps.core import queue_server


@login_not_required
def health(request: HttpRequest) -> HttpResponse:
    """200, or 503 with what does not answer."""
    silent = [name for name, answers in (("database", _database), ("queue", _queue)) if not answers()]
    text = f"no answer of the {' and the '.join(silent)}" if silent else "well"
    return HttpResponse(f"{text}\n", status=503 if silent else 200, content_type="text/plain")


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            # SQLite makes a file that is gone anew, and empty.
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except DatabaseError:
        return False
    return True


def _queue() -> bool:
    if queue_server.HUNG:
        return False
    try:
        with queue_server.client(settings.REDIS_URL) as client:
            return bool(client.ping())
    except redis.TimeoutError:
        queue_server.HUNG.note()
    except redis.RedisError:
        pass
    return False
