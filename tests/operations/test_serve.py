"""A request that is too large is refused while it arrives, by the server that the site runs."""

import re
import socket
import sys
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.operations.running import ROOT, Site, eventually

PIECE = b"x" * (64 << 10)
COUNT = 48  # 3 MiB


@contextmanager
def served(folder, limit, **environment):
    """A site that answers and takes uploads of `limit` bytes."""
    found = Site(folder)
    found.environment |= {"UPLOAD_LIMIT": str(limit), **environment}
    try:
        found.migrate()
        words = ["-b", "127.0.0.1", "-p", str(found.port), "--no-server-name", "tuningsite.asgi:application"]
        found.web = found.start("web", sys.executable, "-m", "tuningsite.serve", *words)
        eventually(lambda: answers(found), 30, "the server")
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with served(tmp_path_factory.mktemp("site"), 3 << 20) as found:
        yield found


def answers(site):
    try:
        socket.create_connection(("127.0.0.1", site.port), 1).close()
    except OSError:
        return False
    return True


def status(site, path, headers, pieces, method="POST"):
    """The status of the answer, or 0, and how many bytes went out before it came."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n" + "".join(f"{h}\r\n" for h in headers)
    sent = 0
    with socket.create_connection(("127.0.0.1", site.port), 20) as connection:
        connection.settimeout(20)
        connection.sendall(head.encode() + b"\r\n")
        try:
            for piece in pieces:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        answer = connection.recv(65536)
    return int(answer.split()[1]) if answer else 0, sent


def chunked(count, end=True):
    yield from (b"%x\r\n%s\r\n" % (len(PIECE), PIECE) for _ in range(count))
    if end:
        yield b"0\r\n\r\n"


def spooled(site):
    """Bytes of files without a name that the server holds, as bodies are kept."""
    total = 0
    for entry in Path(f"/proc/{site.web.pid}/fd").iterdir():
        try:
            if "(deleted)" in str(entry.readlink()):
                total += entry.stat().st_size
        except OSError:
            continue
    return total


def test_a_chunked_body_over_the_limit_is_refused_before_it_ends(site):
    assert status(site, "/login/", ["Transfer-Encoding: chunked"], chunked(COUNT, end=False))[0] == 413
    assert spooled(site) == 0


def test_a_declared_length_over_the_limit_is_refused_before_the_body(site):
    assert status(site, "/login/", [f"Content-Length: {3 << 20}"], [])[0] == 413
    assert status(site, "/login/", ["Content-Length: 99999999999999"], [PIECE] * COUNT)[0] == 413
    headers = [f"Content-Length: {3 << 20}", "Expect: 100-continue"]
    assert status(site, "/login/", headers, [])[0] == 413


def test_only_uploads_have_the_limit_of_uploads(site):
    """3 MiB and what a form adds."""
    length = [f"Content-Length: {COUNT * len(PIECE)}"]
    assert status(site, "/networks/", length, [PIECE] * COUNT)[0] not in (0, 411, 413)
    assert status(site, "/networks/", [f"Content-Length: {2 * COUNT * len(PIECE)}"], [])[0] == 413
    assert status(site, "/networks/", length, [], "PUT")[0] == 413
    eventually(lambda: spooled(site) == 0, 10, "the end of the request")


SIGNED_IN = """
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
owner = get_user_model().objects.create_user("owner")
session = SessionStore()
session[SESSION_KEY], session[HASH_SESSION_KEY] = str(owner.pk), owner.get_session_auth_hash()
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session.create()
result = session.session_key
"""


def test_an_upload_that_its_account_has_no_room_for_is_refused_before_its_body(tmp_path):
    """After one piece of it the answer is there; the rest is never sent."""
    with served(tmp_path, 3 << 20, QUOTA="1MB") as site:
        cookie = f"Cookie: sessionid={site.ask(SIGNED_IN)}"
        assert status(site, "/networks/", [cookie, f"Content-Length: {COUNT * len(PIECE)}"], [PIECE]) == (
            413,
            len(PIECE),
        )
        assert spooled(site) == 0
        fitting = [cookie, f"Content-Length: {8 * len(PIECE)}"]
        assert status(site, "/networks/", fitting, [PIECE] * 8)[0] == 403, site.logs()  # a form without its token
        made_up = ["Cookie: sessionid=nobody", f"Content-Length: {COUNT * len(PIECE)}"]
        assert status(site, "/networks/", made_up, [PIECE] * COUNT)[0] not in (0, 413)


def test_an_upload_of_unknown_size_is_refused_before_its_body(site):
    """No form is read without a length: it would be kept whole for nothing."""
    chunks = ["Transfer-Encoding: chunked"]
    assert status(site, "/networks/", chunks, [])[0] == 411
    assert status(site, "/networks/", chunks, chunked(16))[0] == 411
    assert status(site, "/networks/", chunks, chunked(COUNT, end=False), "PUT")[0] == 413
    assert spooled(site) == 0
    assert answers(site)


def test_the_package_whose_classes_the_server_extends_is_pinned():
    """Daphne asks for any Twisted since 22.4, whose requests know nothing of `parsePOSTFormSubmission`."""
    pins = (ROOT / "requirements.txt").read_text().splitlines()
    assert f"Twisted=={version('Twisted')}" in pins


@pytest.mark.parametrize("headers", [["Transfer-Encoding: chunked"], None], ids=["chunked", "declared"])
def test_a_body_within_the_limit_reaches_the_site(site, headers):
    body = list(chunked(16)) if headers else [PIECE] * 16
    headers = headers or [f"Content-Length: {16 * len(PIECE)}"]
    code, sent = status(site, "/login/", headers, body)
    assert code not in (0, 413), site.logs()
    assert sent == sum(map(len, body))
    assert answers(site)


LARGE = 256 << 20


@pytest.fixture
def roomy(tmp_path):
    """Takes uploads of a gigabyte."""
    with served(tmp_path, 1 << 30) as found:
        yield found


def memory(site, name):
    """Bytes: "VmRSS" now, "VmHWM" at most."""
    status = Path(f"/proc/{site.web.pid}/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+) kB", status)[1])


def form(count):
    head = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="large.onnx"\r\n\r\n'
    return [head, *[PIECE] * count, b"\r\n--edge--\r\n"]


def test_an_upload_is_never_whole_in_memory(roomy, capsys):
    """As a browser sends it, through the parser of forms: the answer is that who sent it has no session."""
    kind = "Content-Type: multipart/form-data; boundary=edge"
    small = form(1)
    assert status(roomy, "/networks/", [kind, f"Content-Length: {sum(map(len, small))}"], small)[0] == 403
    body = form(LARGE // len(PIECE))
    before = memory(roomy, "VmRSS")
    code, sent = status(roomy, "/networks/", [kind, f"Content-Length: {sum(map(len, body))}"], body)
    assert (code, sent) == (403, sum(map(len, body))), roomy.logs()
    after, peak = memory(roomy, "VmRSS"), memory(roomy, "VmHWM")
    with capsys.disabled():
        print(f"\n{LARGE >> 20} MiB sent: {before >> 20} MiB before, {peak >> 20} at most, {after >> 20} after")  # noqa: T201
    assert peak - before < LARGE / 8
    assert after - before < LARGE / 16
    eventually(lambda: spooled(roomy) == 0, 10, "the end of the request")
