"""A request that is too large is refused while it arrives, by the server that the site runs."""

import random
import resource
import socket
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.processes import eventually
from tests.running import ROOT, Running

PIECE = b"x" * (64 << 10)
COUNT = 48
WHOLE = COUNT * len(PIECE)  # 3 MiB
LENGTH = f"Content-Length: {WHOLE}"

SIGNED_IN = """
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
owner, _ = get_user_model().objects.get_or_create(username={!r})
session = SessionStore()
session[SESSION_KEY], session[HASH_SESSION_KEY] = str(owner.pk), owner.get_session_auth_hash()
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session.create()
"""


@contextmanager
def served(folder, limit, change="pass", **environment):
    """A site that answers and takes uploads of `limit` bytes; `change` is done to its server before it starts."""
    found = Running(folder)
    found.environment |= {"UPLOAD_LIMIT": str(limit), **environment}
    try:
        found.migrate()
        found.start_web(change)
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with served(tmp_path_factory.mktemp("site"), 3 << 20, PYTHONUNBUFFERED="1") as found:
        yield found


@pytest.fixture(scope="module")
def cookie(site):
    return signed_in(site, "owner")


def signed_in(site, name):
    """The header of a new account's session."""
    return carrying(site, site.ask(f"{SIGNED_IN.format(name)}result = session.session_key"))


def carrying(site, session):
    """The header of a session's key."""
    return f"Cookie: {cookie_name(site, 'SESSION')}={session}"


def cookie_name(site, kind):
    return site.ask(f"from django.conf import settings; result = settings.{kind}_COOKIE_NAME")


def status(site, path, headers, pieces, method="POST"):
    """The status of the answer, or 0, and how many bytes went out before it came."""
    answer, sent = asked(site, path, headers, pieces, method)
    return int(answer.split()[1]) if answer else 0, sent


def asked(site, path, headers, pieces, method="POST"):
    """The answer, and how many bytes went out before it came."""
    sent = 0
    with begun(site, path, headers, method) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        answer = connection.recv(65536)
    return answer.decode(errors="replace"), sent


def begun(site, path, headers, method="POST"):
    """A connection on which the head of a request was sent."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n" + "".join(f"{h}\r\n" for h in headers)
    connection = socket.create_connection(("127.0.0.1", site.port), 20)
    connection.settimeout(20)
    connection.sendall(head.encode() + b"\r\n")
    return connection


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


def test_the_log_tells_who_asked_for_what_but_no_token_of_a_link(site):
    """A look ahead does not use it up, nor does a refusal, which Django writes down too."""
    assert status(site, "/login/a-token/?next=x", [], [], "HEAD")[0] == 405
    eventually(lambda: site.log("web").count("/login/.../") == 2, 10, "both lines")
    assert '"HEAD /login/.../?next=x" 405' in site.log("web")
    assert "a-token" not in site.log("web")


def test_what_anybody_may_send_is_in_no_file(site):
    """Beside uploads, however large it may be."""
    with begun(site, "/login/", [f"Content-Length: {len(PIECE)}"]) as connection:
        connection.sendall(PIECE[1:])
        with begun(site, "/login/", [f"Content-Length: {len(PIECE) + 1}"]) as larger:
            assert larger.recv(65536).startswith(b"HTTP/1.1 413 ")
        assert spooled(site) == 0
        connection.sendall(b"x")
        assert connection.recv(65536).startswith(b"HTTP/1.1 ")


def test_a_declared_length_over_the_limit_is_refused_before_the_body(site):
    assert status(site, "/login/", [f"Content-Length: {3 << 20}"], [])[0] == 413
    assert status(site, "/login/", ["Content-Length: 99999999999999"], [PIECE] * COUNT)[0] == 413
    headers = [f"Content-Length: {3 << 20}", "Expect: 100-continue"]
    assert status(site, "/login/", headers, [])[0] == 413


def test_only_uploads_have_the_limit_of_uploads(site, cookie):
    """3 MiB and what a form adds; what is read is refused as a form without its token."""
    length = [cookie, LENGTH]
    assert status(site, "/networks/", length, [PIECE] * COUNT) == (403, WHOLE)
    answer, _ = asked(site, "/networks/", [cookie, f"Content-Length: {2 * WHOLE}"], [])
    assert answer.startswith("HTTP/1.1 413 ")
    assert "it is larger than the 3.21 MB that are taken here. Next step: upload a smaller network" in answer
    assert status(site, "/networks/", length, [], "PUT")[0] == 413
    eventually(lambda: spooled(site) == 0, 10, "the end of the request")


def test_an_upload_that_its_account_has_no_room_for_is_refused_before_its_body(tmp_path):
    """After one piece of it the answer is there; the rest is never sent."""
    with served(tmp_path, 3 << 20, QUOTA="1MB") as site:
        cookie = signed_in(site, "owner")
        assert status(site, "/networks/", [cookie, LENGTH], [PIECE]) == (507, len(PIECE))
        assert spooled(site) == 0
        fitting = [cookie, f"Content-Length: {8 * len(PIECE)}"]
        assert status(site, "/networks/", fitting, [PIECE] * 8) == (403, 8 * len(PIECE)), site.logs()


NOBODY = "nobody is signed in. Next step: sign in"


def test_an_upload_of_nobody_is_refused_before_its_body(site):
    """Without a session, and with one that is made up; what is no larger than a form is the application's to refuse."""
    for headers in ([LENGTH], [LENGTH, "Expect: 100-continue"], [LENGTH, carrying(site, "nobody")]):
        answer, sent = asked(site, "/networks/", headers, [PIECE])
        assert answer.startswith("HTTP/1.1 403 ")
        assert NOBODY in answer
        assert sent == len(PIECE)
    assert spooled(site) == 0
    answer, sent = asked(site, "/networks/", [f"Content-Length: {len(PIECE)}"], [PIECE])
    assert answer.startswith("HTTP/1.1 403 ")
    assert NOBODY not in answer
    assert sent == len(PIECE)


def arriving(site, cookie, count):
    """Connections on which as many uploads arrive without end."""
    connections = [begun(site, "/networks/", [cookie, LENGTH]) for _ in range(count)]
    for connection in connections:
        connection.sendall(4 * PIECE)
    eventually(lambda: spooled(site) > count * 3 * len(PIECE), 10, "the beginning of the uploads")
    return connections


def test_of_an_account_three_uploads_arrive_at_a_time(site, cookie):
    connections = arriving(site, cookie, 3)
    answer, sent = asked(site, "/networks/", [cookie, LENGTH], [PIECE])
    assert answer.startswith("HTTP/1.1 429 ")
    assert "Next step: wait until one of them is done" in answer
    assert sent == len(PIECE)
    other = signed_in(site, "another")
    assert status(site, "/networks/", [other, LENGTH], [PIECE] * COUNT) == (403, WHOLE)
    connections[0].close()
    for _ in range(4):  # one that ends leaves its seat as one that breaks off does
        eventually(lambda: status(site, "/networks/", [cookie, LENGTH], [PIECE] * COUNT) == (403, WHOLE), 10, "a seat")
    for connection in connections:
        connection.close()
    eventually(lambda: spooled(site) == 0, 10, "the end of the requests")


@pytest.mark.mutation
def test_a_server_that_judges_nothing_by_its_head_is_noticed(tmp_path):
    with served(tmp_path, 3 << 20, "serve.judged, serve.SEATS = lambda *_: (0, None), serve.Seats(99)") as site:
        made_up = carrying(site, "nobody")
        assert status(site, "/networks/", [made_up, LENGTH], [PIECE] * COUNT)[1] == WHOLE
        connections = arriving(site, made_up, 3)
        assert NOBODY not in asked(site, "/networks/", [made_up, LENGTH], [PIECE] * COUNT)[0]
        for connection in connections:
            connection.close()


def test_an_upload_is_not_read_while_nobody_can_be_asked_about_it(site, cookie):
    rename = "from django.db import connection; connection.cursor().execute('ALTER TABLE {} RENAME TO {}')"
    site.ask(rename.format("django_session", "hidden"))
    try:
        answer, _ = asked(site, "/networks/", [cookie, LENGTH], [PIECE])
    finally:
        site.ask(rename.format("hidden", "django_session"))
    assert answer.startswith("HTTP/1.1 503 ")
    assert "the site's database does not answer. Next step: try again" in answer
    assert spooled(site) == 0


@pytest.mark.parametrize("size", [WHOLE, (1 << 20) + 100], ids=["large", "by a little"])
def test_an_upload_that_the_disk_does_not_take_is_explained(site, cookie, size):
    """As on a full disk: no file of the server may grow over a megabyte."""
    free = resource.prlimit(site.web.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(site.web.pid, resource.RLIMIT_FSIZE, (1 << 20, free[1]))
    try:
        answer, _ = asked(site, "/networks/", [cookie, f"Content-Length: {size}"], [b"x" * size])
    finally:
        resource.prlimit(site.web.pid, resource.RLIMIT_FSIZE, free)
    assert answer.startswith("HTTP/1.1 507 "), site.logs()
    assert "it cannot be written (File too large). Next step: make room on the server's disk" in answer
    assert spooled(site) == 0
    eventually(lambda: status(site, "/networks/", [cookie, LENGTH], [PIECE] * COUNT) == (403, WHOLE), 10, "room again")


@pytest.mark.parametrize("path", ["/networks/", "/login/"])
def test_a_body_of_unknown_size_is_refused_before_it_comes(site, path):
    """No form is read without a length: it would be kept whole for nothing."""
    chunks = ["Transfer-Encoding: chunked"]
    assert status(site, path, chunks, [])[0] == 411
    assert status(site, path, chunks, chunked(16))[0] == 411
    assert status(site, path, chunks, chunked(COUNT, end=False), "PUT")[0] == 411
    assert spooled(site) == 0
    assert site.answers()


def test_the_package_whose_classes_the_server_extends_is_pinned():
    """Daphne asks for any Twisted since 22.4, whose requests know nothing of `parsePOSTFormSubmission`."""
    pins = (ROOT / "requirements.txt").read_text().splitlines()
    assert f"Twisted=={version('Twisted')}" in pins


KIND = "Content-Type: multipart/form-data; boundary=edge"


def form(content):
    head = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="large.onnx"\r\n\r\n'
    return [head, *content, b"\r\n--edge--\r\n"]


def test_an_upload_is_kept_as_it_was_sent(site, cookie):
    """As a script sends it that is signed in, and waits to be told that it may send the body."""
    content, token = random.Random(1).randbytes(1_500_000), "t" * 32
    field = f'--edge\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n{token}\r\n'
    body = b"".join([field.encode(), *form([content])])
    cookie = f"{cookie}; {cookie_name(site, 'CSRF')}={token}"
    headers = [cookie, KIND, f"Content-Length: {len(body)}", "X-Requested-With: XMLHttpRequest"]
    with begun(site, "/networks/", [*headers, "Expect: 100-continue"]) as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert b'{"location": "/networks/' in connection.recv(65536), site.logs()
    path = site.ask("result = Network.objects.get(name='large').path")
    assert Path(path).read_bytes() == content


LARGE = 256 << 20


@pytest.fixture
def roomy(tmp_path):
    """Takes uploads of a gigabyte."""
    with served(tmp_path, 1 << 30) as found:
        yield found


def test_an_upload_is_never_whole_in_memory(roomy, capsys):
    """As a browser sends it, through the parser of forms: the answer is that the form has no token."""
    cookie, small = signed_in(roomy, "owner"), form([PIECE] * 2)
    assert status(roomy, "/networks/", [cookie, KIND, f"Content-Length: {sum(map(len, small))}"], small)[0] == 403
    body = form([PIECE] * (LARGE // len(PIECE)))
    before = roomy.memory("VmRSS")
    code, sent = status(roomy, "/networks/", [cookie, KIND, f"Content-Length: {sum(map(len, body))}"], body)
    assert (code, sent) == (403, sum(map(len, body))), roomy.logs()
    after, peak = roomy.memory("VmRSS"), roomy.memory("VmHWM")
    with capsys.disabled():
        print(f"\n{LARGE >> 20} MiB sent: {before >> 20} MiB before, {peak >> 20} at most, {after >> 20} after")  # noqa: T201
    assert peak - before < LARGE / 8
    assert after - before < LARGE / 16
    eventually(lambda: spooled(roomy) == 0, 10, "the end of the request")
