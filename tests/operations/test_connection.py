"""How long a client may keep the site's server waiting, how much it may say, and what that costs the others."""

import base64
import resource
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.operations.test_serve import begun, served, signed_in
from tests.processes import eventually

SIZE = 64 << 20
ARCHIVE = """
from tests.apps.rows import Site
from apps.tuning.models import Artifact
rows = Site()
run = rows.run()
job = Job.objects.create(task="compile", run=run, owner=rows.ada)
made = Artifact.objects.create(run=run, job=job, sha256="a" * 64, size={0}, state="ready", ratio=1.0)
made.path.parent.mkdir(exist_ok=True)
with made.path.open("wb") as file:
    file.truncate({0})
result = f"/artifacts/{{made.pk}}/download"
"""
ESTABLISHED = "01"
BUFFERED = 200 << 10
"""Bytes, which hold what a client sends to one that reads nothing of it; a site that did listen took more in its second."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Whose clients may stand still for two seconds; it is started with 256 files as its limit."""
    change = """
import resource
from tuningsite import connection
connection.STALLED = connection.HEAD = connection.REQUEST = 2.0
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
import django
django.setup()
from apps.dashboard import consumers
consumers.BETWEEN_FRAMES, consumers.MOST = 0.01, 10**6
connection.CLIENTS, connection.client_of = connection.Seats(16), str  # this machine is a client as others are
"""
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
            byte = connection.recv(1)
            assert byte, "it ended early"
            head += byte
        left = SIZE
        while left:
            piece = connection.recv(min(left, 1 << 20))
            assert piece, "it ended early"
            left -= len(piece)
        connection.sendall(f"GET /login/ HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nConnection: close\r\n\r\n".encode())
        assert connection.recv(1 << 20).startswith(b"HTTP/1.1 200 ")


def test_of_downloads_that_nobody_takes_little_is_held_and_not_for_long(site, archive):
    before = site.memory("VmRSS")
    stalled = [asked_for(site, *archive) for _ in range(3)]
    for connection in stalled:
        assert connection.recv(1, socket.MSG_PEEK)
    eventually(lambda: connected(site) == 0, 30, "the end of the downloads")
    assert site.memory("VmHWM") - before < SIZE / 4
    for connection in stalled:
        with connection:
            assert 0 < received(connection) < SIZE


DRIPPING = {
    "nothing": b"",
    "a first line": b"GET /",
    "a head": b"GET /login/ HTTP/1.1\r\nX: ",
    "a body": b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
    "the next head": b"GET /login/ HTTP/1.1\r\nHost: localhost\r\n\r\nGET /",
}


def over(connection, more):
    """Sends `more`; whether the server has ended the connection."""
    try:
        connection.send(more)
        while connection.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def test_a_request_that_is_never_whole_is_broken_off_however_often_a_byte_of_it_comes(site):
    with ExitStack() as opened:
        waiting = {}
        for name, begun in DRIPPING.items():
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", site.port), 20))
            connection.sendall(begun)
            connection.setblocking(False)
            waiting[name] = connection
        deadline = time.monotonic() + 30
        while waiting and time.monotonic() < deadline:
            time.sleep(0.05)
            waiting = {name: one for name, one in waiting.items() if not over(one, DRIPPING[name] and b"x")}
        assert not waiting


def test_as_many_connections_are_taken_as_the_system_allows(site):
    soft, hard = resource.prlimit(site.web.pid, resource.RLIMIT_NOFILE)
    assert soft == hard > 256


def test_an_address_has_so_many_connections_and_those_that_ended_count_no_more(site, archive):
    for _ in range(2):
        eventually(lambda: connected(site) == 0, 20, "the end of the others")
        with viewing(site, archive) as viewer, ExitStack() as opened:
            assert b" 101 " in viewer.recv(1000)
            for _ in range(15):
                opened.enter_context(asked_for(site, *archive))
            eventually(lambda: connected(site) == 16, 2, "all of them")
            with suppress(ConnectionError), asked_for(site, "/login/") as more:
                assert not more.recv(1000)


@pytest.mark.parametrize("value", [b"\xff", b"/elsewhere"])
def test_nobody_moves_the_site_to_another_path_by_a_header(site, value):
    with socket.create_connection(("127.0.0.1", site.port), 20) as connection:
        head = f"GET /login/ HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nDaphne-Root-Path: ".encode()
        connection.sendall(head + value + b"\r\n\r\n")
        answer = connection.recv(1 << 20)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"/elsewhere" not in answer


ACKNOWLEDGED = b'{"ack": 1000000}'


def said(text):
    """A frame of a viewer."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text


def viewing(site, archive, query="", run=""):
    """A line to the run, or to another."""
    upgrade = [
        "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}", f"Origin: http://127.0.0.1:{site.port}",
    ]  # fmt: skip
    run = run or site.ask("result = str(TuningRun.objects.get().pk)")
    return asked_for(site, f"/ws/runs/{run}/{query}", archive[1], *upgrade)


TOLD = """
from apps.tuning.models import Event, Job
run = TuningRun.objects.get()
told = ({{"kind": "log", "seq": seq, "text": "x" * {0}}} for seq in range(1000, 1000 + {1}))
Event.objects.bulk_create(
    [Event(run=run, seq=one["seq"], kind="log", payload=one, digest=str(one["seq"])) for one in told], 500
)
Job.objects.filter(pk=run.job_id).update(last_seq=999 + {1})
"""


def test_what_a_viewer_acknowledges_and_does_not_take_is_not_held_for_it(site, archive):
    site.ask(TOLD.format(4000, 12_000))
    before = site.memory("VmRSS")
    with viewing(site, archive, "?after=999") as viewer:
        eventually(lambda: connected(site) == 1, 20, "the line")

        def ended():
            with suppress(ConnectionError):
                viewer.sendall(said(b'{"ack": 900000000000000000}'))
            return connected(site) == 0

        eventually(ended, 20, "the end of the line")
        assert site.memory("VmHWM") - before < 25 << 20, "of 48 millions"
    site.ask("from apps.tuning.models import Event; Event.objects.filter(seq__gte=1000).delete()")


def test_however_much_happened_at_once_a_viewer_is_told(site, archive):
    site.ask(TOLD.format(10_000, 200))
    with viewing(site, archive, "?after=999") as viewer:
        left = 2_000_000
        while left > 0 and (piece := viewer.recv(1 << 20)):
            left -= len(piece)
    site.ask("from apps.tuning.models import Event; Event.objects.filter(seq__gte=1000).delete()")
    assert left <= 0


def test_who_is_sent_away_is_not_listened_to(site, archive):
    """Nobody's run: the site closes the line, which for a second waits for an answer to that. What it does not listen to lies
    in the buffers of the system, which are small here."""
    with viewing(site, archive, run="00000000-0000-0000-0000-000000000000") as viewer:
        answer = b""
        while b"gone" not in answer and bytes([0x88]) not in answer:
            answer += viewer.recv(1000)
        viewer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        much, sent = said(ACKNOWLEDGED) * 1000, 0
        with suppress(ConnectionError):
            while sent <= BUFFERED:
                sent += viewer.send(much)
        assert sent <= BUFFERED, "it listened"


def test_a_viewer_that_says_more_than_a_page_is_broken_off(site, archive):
    """Half a million acknowledgements kept everybody waiting for 16 s, and took 130 MB."""
    with viewing(site, archive) as viewer:
        assert b" 101 " in viewer.recv(1000)
        viewer.sendall(said(ACKNOWLEDGED) * 4 * 60)  # a minute's
        viewer.settimeout(0.5)
        with pytest.raises(TimeoutError):
            received(viewer)
        viewer.settimeout(20)
        before = site.memory("VmRSS")
        with suppress(ConnectionError):
            for _ in range(1000):
                viewer.sendall(said(ACKNOWLEDGED) * 1000)
            pytest.fail("it was listened to")
    assert site.memory("VmRSS") - before < 8 << 20
