"""What whoever watches the site is told, without a session."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import Client

from apps.core import queue_server


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that answers, or as it is told."""

    class Answering:
        def __enter__(self) -> Answering:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def ping(self) -> bool:
            return True

    monkeypatch.setattr(queue_server, "client", lambda url: Answering())
    monkeypatch.setattr(queue_server, "HUNG", queue_server.Hung())


@pytest.mark.django_db
@pytest.mark.usefixtures("queue")
def test_all_is_well(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_REDIRECT_EXEMPT = (
        True,
        ["^health$"],
    )  # behind a proxy, past which it is asked
    answer = client.get("/health")
    assert (answer.status_code, answer.content, answer["Content-Type"]) == (200, b"well\n", "text/plain")
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
@pytest.mark.usefixtures("queue")
def test_a_database_that_does_not_answer_is_told(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise DatabaseError("it went away")

    monkeypatch.setattr(connection, "cursor", gone)
    answer = client.get("/health")
    assert (answer.status_code, answer.content) == (503, b"no answer of the database\n")


@pytest.mark.django_db
def test_a_queue_that_does_not_answer_is_told_at_once_the_second_time(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_server, "HUNG", queue_server.Hung())
    settings.REDIS_URL = "redis://127.0.0.1:1"
    for _ in range(2):
        answer = client.get("/health")
        assert (answer.status_code, answer.content) == (503, b"no answer of the queue\n")
        settings.REDIS_URL = "nothing to be asked"
