import os
import signal
import stat
from pathlib import Path

import pytest
import redis

from apps.operations import embedded
from apps.operations.parts import Part, Plan


@pytest.fixture
def server(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    plan = Plan("queue", embedded.arguments(tmp_path), before=embedded.forget_when_broken(tmp_path))
    part = Part(plan, logs, dict(os.environ))
    part.start()
    embedded.wait_until_up(embedded.url_of(embedded.socket_path(tmp_path)), 10)
    yield part
    part.kill()


@pytest.fixture
def client(server, tmp_path):
    with redis.Redis.from_url(embedded.url_of(embedded.socket_path(tmp_path))) as found:
        yield found


def test_only_this_user_reaches_the_server(client, tmp_path):
    assert stat.S_IMODE((tmp_path / "redis").stat().st_mode) == 0o700
    assert client.config_get("port") == {"port": "0"}
    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert client.config_get("appendonly") == {"appendonly": "yes"}


def test_what_was_queued_is_there_after_a_restart(server, client):
    client.set("message", "kept")
    server.ask_to_end()
    server._process.wait(5)
    server.start()
    embedded.wait_until_up(client_url(client), 10)
    assert client.get("message") == b"kept"


def client_url(client):
    return "unix://" + client.connection_pool.connection_kwargs["path"]


def test_files_that_keep_it_from_starting_are_given_up(server, client, tmp_path):
    client.set("message", "kept")
    os.kill(server.pid, signal.SIGKILL)
    server._process.wait(5)
    for file in (tmp_path / "redis" / "appendonlydir").glob("*.manifest"):
        file.write_text("rubbish")
    server.start()
    assert server._process.wait(10) != 0
    server.failures = embedded.TRIES
    server.start()
    embedded.wait_until_up(client_url(client), 10)
    assert client.get("message") is None


def test_a_directory_with_a_long_name_gets_a_short_socket(tmp_path):
    deep = tmp_path / ("d" * 90) / ("e" * 90)
    path = embedded.socket_path(deep)
    assert len(os.fsencode(path)) < 108
    assert path == embedded.socket_path(deep) != embedded.socket_path(tmp_path / ("f" * 200))
    assert str(os.getuid()) in str(path)


def test_a_directory_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(embedded.NoServer, match="not a directory of ours"):
        embedded.private_directory(tmp_path / "link")


def test_a_server_that_does_not_answer_is_said(tmp_path):
    with pytest.raises(embedded.NoServer, match="does not answer"):
        embedded.wait_until_up(f"unix://{tmp_path}/nothing", 0.0)
    assert isinstance(embedded.binary(), Path)
