"""How long a client may keep the site's server waiting, and what that costs the others."""

from contextlib import suppress
from pathlib import Path

import pytest

from tests.operations.running import eventually
from tests.operations.test_serve import begun, memory, served, signed_in

SIZE = 64 << 20
ARCHIVE = """
from tests.apps.rows import Site as Rows
from apps.tuning.models import Artifact
rows = Rows()
run = rows.run()
job = Job.objects.create(task="compile", run=run, owner=rows.ada)
made = Artifact.objects.create(run=run, job=job, sha256="a" * 64, size={0}, state="ready", ratio=1.0)
made.path.parent.mkdir(exist_ok=True)
with made.path.open("wb") as file:
    file.truncate({0})
result = f"/artifacts/{{made.pk}}/download"
"""
ESTABLISHED = "01"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Whose clients may stand still for two seconds."""
    change = "from tuningsite import connection; connection.STALLED = 2.0"
    with served(tmp_path_factory.mktemp("site"), 3 << 20, change) as found:
        yield found


@pytest.fixture(scope="module")
def archive(site):
    """Its address, and the header of a session that may have it."""
    return site.ask(ARCHIVE.format(SIZE)), signed_in(site, "ada")


def asked_for(site, address, *headers):
    return begun(site, address, headers, "GET")


def received(connection):
    """Bytes until the connection ends, or is broken off."""
    count = 0
    with suppress(ConnectionError):
        while piece := connection.recv(1 << 20):
            count += len(piece)
    return count


def connected(site):
    """How many connections the server has."""
    lines = [line.split() for line in Path(f"/proc/{site.web.pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(words[1].endswith(f":{site.port:04X}") and words[3] == ESTABLISHED for words in lines)


def test_a_download_comes_whole_and_its_connection_is_of_use_afterwards(site, archive):
    address, cookie = archive
    with asked_for(site, address, cookie) as connection:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        left = SIZE
        while left:
            left -= len(connection.recv(min(left, 1 << 20)))
        connection.sendall(f"GET /login/ HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nConnection: close\r\n\r\n".encode())
        assert connection.recv(1 << 20).startswith(b"HTTP/1.1 200 ")


def test_of_downloads_that_nobody_takes_little_is_held_and_not_for_long(site, archive):
    before = memory(site, "VmRSS")
    stalled = [asked_for(site, *archive) for _ in range(3)]
    eventually(lambda: connected(site) == 3, 10, "the downloads")
    eventually(lambda: connected(site) == 0, 20, "the end of the downloads")
    assert memory(site, "VmHWM") - before < SIZE / 4
    for connection in stalled:
        with connection:
            assert 0 < received(connection) < SIZE
