"""What whoever watches the site is told, without a session."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import Client

from apps.core import queue_server
from tests.running import ROOT


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
def test_all_is_well(client: Client) -> None:
    answer = client.get("/health")
    assert (answer.status_code, answer.content, answer["Content-Type"]) == (200, b"well\n", "text/plain")


def test_behind_a_proxy_it_is_asked_past_that() -> None:
    told = "from django.conf import settings; print(settings.SECURE_SSL_REDIRECT, settings.SECURE_REDIRECT_EXEMPT)"
    argv = [sys.executable, "manage.py", "shell", "--no-imports", "-c", told]
    environment = {
        **os.environ,
        "TLS": "1",
        "ALLOWED_HOSTS": "tuning.example.org",
        "DJANGO_SETTINGS_MODULE": "tuningsite.settings",
    }
    assert subprocess.check_output(argv, text=True, cwd=ROOT, env=environment).strip() == "True ['^health$']"


@pytest.mark.django_db
@pytest.mark.usefixtures("queue")
def test_a_database_that_does_not_answer_is_told(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise DatabaseError("it went away")

    monkeypatch.setattr(connection, "cursor", gone)
    answer = client.get("/health")
    assert (answer.status_code, answer.content) == (503, b"no answer of the database\n")


@pytest.mark.django_db
def test_a_queue_that_is_gone_is_told_and_nobody_else_is_kept_from_asking_it(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_server, "HUNG", queue_server.Hung())
    settings.REDIS_URL = "redis://127.0.0.1:1"
    answer = client.get("/health")
    assert (answer.status_code, answer.content) == (503, b"no answer of the queue\n")
    assert not queue_server.HUNG


@pytest.mark.django_db
def test_a_queue_that_hangs_is_not_waited_for_twice(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_server, "HUNG", queue_server.Hung())
    monkeypatch.setattr(queue_server, "PATIENCE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        assert client.get("/health").status_code == 503
        assert queue_server.HUNG
    settings.REDIS_URL = "nothing to be asked"
    assert client.get("/health").status_code == 503
