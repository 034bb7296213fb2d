"""Each limit is tried by a program that goes over it."""

import json
import os
import signal
import socket
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.kernel import needs
from tests.processes import alive, comes_true
from workers.sandbox import landlock, spawn
from workers.sandbox.spawn import Access, Limits, SpawnError, scrubbed

ROOT = Path(__file__).resolve().parents[2]
KERNEL = landlock.supported()


def says(program: str, **options: Any) -> Any:
    """What a Python program prints as JSON under these options."""
    with spawn.spawn(
        [sys.executable, "-c", f"import json, os, sys\n{program}"], stdout=subprocess.PIPE, **options
    ) as child:
        assert child.stdout is not None
        text = child.stdout.read()
        child.end(5)
    return json.loads(text)


def test_a_child_leads_a_session_of_its_own_and_gains_no_privileges() -> None:
    status = says("print(json.dumps([os.getpid() == os.getsid(0) == os.getpgid(0), open('/proc/self/status').read()]))")
    assert status[0]
    assert "NoNewPrivs:\t1" in status[1]


def test_limits_are_in_force() -> None:
    limits = Limits(address_space=1 << 31, cpu_seconds=7, file_size=1 << 20, open_files=99, nice=3)
    program = (
        "import resource as r\n"
        "kinds = (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_NOFILE, r.RLIMIT_CORE)\n"
        "print(json.dumps([[r.getrlimit(kind)[0] for kind in kinds], os.nice(0)]))"
    )
    values, nice = says(program, limits=limits)
    assert values == [1 << 31, 7, 1 << 20, 99, 0]
    assert nice == min(19, os.nice(0) + 3)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    program = (
        "file = open('large', 'wb', 0); file.write(b'x' * 4096)\n"
        "try: file.write(b'x')\nexcept OSError as error: print(error.errno)"
    )
    assert says(program, limits=Limits(file_size=4096), cwd=tmp_path) == 27


def test_pipes_break_as_they_should() -> None:
    """A bootstrap in Python ignores SIGPIPE; a program that is not Python must not inherit that."""
    with spawn.spawn(["grep", "SigIgn", "/proc/self/status"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        ignored = int(child.stdout.read().split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


def leaks(environment: dict[str, str]) -> bool:
    return any(value == "hidden" for value in environment.values())


SECRETS = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "GH_TOKEN", "PGPASSWORD", "AWS_SESSION", "SSH_AUTH_SOCK")


def test_only_allowed_names_and_additions_reach_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "hidden")
    monkeypatch.setenv("LC_MESSAGES", "fr_FR.UTF-8")
    monkeypatch.setenv("LANGUAGE", "fr")
    environment = says("print(json.dumps(dict(os.environ)))", env={"TVM_NUM_THREADS": "2"})
    assert not leaks(environment)
    assert (environment["TVM_NUM_THREADS"], environment["PATH"]) == ("2", os.environ["PATH"])
    # A linker's "No space left on device" is looked for in what it says.
    assert environment["LC_ALL"] == "C.UTF-8"
    assert not {"LC_MESSAGES", "LANGUAGE"} & set(environment)


@pytest.mark.mutation
def test_a_wider_allow_list_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "INHERITED", spawn.INHERITED | {"DATABASE_URL"})
    monkeypatch.setenv("DATABASE_URL", "hidden")
    assert leaks(says("print(json.dumps(dict(os.environ)))"))


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "DJANGO_SECRET_KEY", "api_token", "DB_PASSWORD"])
def test_a_secret_cannot_be_added(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        scrubbed({name: "hidden"})


def test_a_program_that_is_not_there_is_named() -> None:
    with spawn.spawn(["/no/such/program"]) as child, pytest.raises(SpawnError, match="/no/such/program"):
        child.protection()


def test_workers_can_be_imported_from_any_directory(tmp_path: Path) -> None:
    assert says("import workers.messages; print('true')", cwd=tmp_path) is True


FAMILY = """
import subprocess, sys, time
from workers.sandbox.spawn import Access, spawn
nap = [sys.executable, "-c", "import time; time.sleep(600)"]
child = spawn(nap, dies_with_parent={bound}, access=Access() if {confined} else None)
child.protection()
print(child.pid, flush=True)
time.sleep(600)
"""


def orphan_after_kill(bound: bool, confined: bool = False) -> bool:
    """Whether the child of a killed process is still there some seconds later."""
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY.format(bound=bound, confined=confined)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as middle:
        assert middle.stdout is not None
        pid = int(middle.stdout.readline())
        middle.kill()
    gone = comes_true(lambda: not alive(pid), 10 if bound else 2)
    if not gone:
        os.kill(pid, signal.SIGKILL)
    return not gone


@pytest.mark.parametrize("confined", [False, True])
def test_a_child_dies_with_its_parent(confined: bool) -> None:
    assert not orphan_after_kill(True, confined)


@pytest.mark.mutation
def test_without_the_parent_death_signal_the_orphan_is_noticed() -> None:
    assert orphan_after_kill(False)


def test_a_child_whose_parent_is_already_gone_ends_at_once() -> None:
    program = f"import os; from workers.sandbox.confine import die_with_parent; die_with_parent({os.getpid()} + 1)"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert ran.returncode == -signal.SIGKILL


ESCAPE = """
import os, subprocess, sys, time
subprocess.run(["sh", "-c", "setsid sleep 600 & echo $!"], check=True)
if len(sys.argv) > 1:
    import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("deaf", [False, True])
def test_ending_a_process_ends_what_escaped_its_session(deaf: bool) -> None:
    argv = [sys.executable, "-c", ESCAPE, *(["deaf"] if deaf else [])]
    with spawn.spawn(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        said = b""
        while b"ready" not in said:
            said += os.read(child.stdout.fileno(), 100)
        escaped = int(said.split()[0])
        assert alive(escaped)
        assert child.end(0.3) == (-signal.SIGKILL if deaf else -signal.SIGTERM)
    assert not alive(escaped)
    assert not alive(child.pid)


READ = "try: open(sys.argv[1]).read(); print('true')\nexcept OSError as error: print(json.dumps(error.errno))"


def reads(path: Path | str, access: Access) -> Any:
    program = READ.replace("sys.argv[1]", repr(str(path)))
    return says(program, access=access, cwd="/")


@needs("landlock")
def test_only_named_files_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "network.onnx").write_text("model")
    (tmp_path / "outside").write_text("secret")
    access = Access(read=(str(tmp_path / "in"),))
    assert reads(tmp_path / "in" / "network.onnx", access) is True
    assert reads(tmp_path / "outside", access) == 13
    assert reads("/etc/passwd", access) == 13
    assert reads(ROOT / "pyproject.toml", access) == 13
    assert reads(f"/proc/{os.getpid()}/environ", access) == 13


@needs("landlock")
@pytest.mark.mutation
def test_without_landlock_the_read_outside_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside").write_text("secret")
    monkeypatch.setattr(spawn, "_SYSTEM_READ", ("/",))
    assert reads(tmp_path / "outside", Access()) is True


@needs("landlock")
def test_only_the_work_directory_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    program = (
        "import tempfile\n"
        "def write(path):\n"
        "    try: open(path, 'w').write('x')\n"
        "    except OSError as error: return error.errno\n"
        "    return 0\n"
        f"print(json.dumps([write({str(tmp_path)!r} + name) for name in ('/work/new', '/new')]"
        " + [write('/dev/null'), write('/dev/shm/new'), tempfile.gettempdir()]))"
    )
    work = str(tmp_path / "work")
    assert says(program, access=Access(write=(work,)), cwd="/") == [0, 13, 0, 13, work]


def test_a_confined_child_has_no_capability_left() -> None:
    status = says("print(json.dumps(open('/proc/self/status').read()))", access=Access())
    sets = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Cap"))
    assert sets
    assert {int(mask, 16) for mask in sets.values()} == {0}


@needs("landlock")
def test_the_level_is_known_to_parent_and_child() -> None:
    with spawn.spawn([sys.executable, "-c", "pass"], access=Access()) as child:
        assert child.protection().landlock == KERNEL
        assert child.protection().landlock == KERNEL
    assert says("print(os.environ['TUNINGSITE_LANDLOCK'])", access=Access()) == KERNEL
    assert says("print(os.environ['TUNINGSITE_LANDLOCK'])") == 0


@needs("landlock")
def test_a_confined_child_can_confine_its_own_children(tmp_path: Path) -> None:
    program = (
        "import subprocess; from workers.sandbox.spawn import spawn, Access\n"
        "with spawn([sys.executable, '-c', 'print(1 + 1)'], access=Access(), stdout=subprocess.PIPE) as child:\n"
        "    print(json.dumps([child.stdout.read().decode(), child.end(5)]))"
    )
    assert says(program, access=Access(write=(str(tmp_path),)), cwd=tmp_path) == ["2\n", 0]


CONNECT = """
import socket
from workers.sandbox import confine, landlock
confine._prctl(38, 1)
landlock.restrict(listing=(), reading=("/",), writing=(), network={network})
print(socket.socket().connect_ex(("127.0.0.1", {port})))
"""


@needs("tcp")
@pytest.mark.parametrize(("network", "answer"), [(True, 0), (False, 13)])
def test_landlock_alone_denies_connections(network: bool, answer: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert says(CONNECT.format(network=network, port=server.getsockname()[1])) == answer


@needs("scopes")
def test_a_confined_child_cannot_signal_outside() -> None:
    program = f"try: os.kill({os.getpid()}, 0); print(0)\nexcept OSError as error: print(error.errno)"
    assert says(program, access=Access()) == 1


NAMED = """
def named(path):
    try: open(path, "w").write("x"); return True
    except OSError: return False
inner = "import sys; exec(sys.argv[1]); print(named('/proc/self/task/' + str(__import__('os').getpid()) + '/comm'))"
own = named(f"/proc/self/task/{os.getpid()}/comm")
import subprocess
done = subprocess.run([sys.executable, "-c", inner, SOURCE], capture_output=True, text=True)
print(json.dumps([own, done.stdout.strip() == "True"]))
"""


def test_a_gpus_process_may_write_to_the_devices_of_cards_and_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/dev/nvmap", "/dev/nvhost-gpu", "/dev/nvgpu", "/dev/sda")
    monkeypatch.setattr(spawn.glob, "glob", lambda pattern: [one for one in devices if fnmatch(one, pattern)])
    opened = [set(spawn._access_policy(Access(gpu=gpu), {})["files"]["writing"]) for gpu in (False, True)]
    assert opened[1] - opened[0] == {*devices[:-1]}


@needs("landlock")
@pytest.mark.parametrize("gpu", [False, True])
def test_a_gpus_process_names_its_threads_and_nothing_that_it_starts_does(gpu: bool) -> None:
    source = NAMED.split("inner")[0]
    program = "import os, sys\n" + NAMED.replace("SOURCE", repr(source))
    assert says(program, access=Access(gpu=gpu)) == [gpu, False]


@pytest.mark.parametrize(("required", "starts"), [(False, True), (True, False)])
def test_a_kernel_without_landlock_stops_only_what_requires_it(required: bool, starts: bool, tmp_path: Path) -> None:
    """The bootstrap runs in a process of its own, so the feature is taken away in one too."""
    program = (
        "import json, sys; from workers.sandbox import confine, landlock\n"
        "landlock.supported = lambda: 0\n"
        "files, calls = {'listing': [], 'reading': [], 'writing': []}, {'gpu': False, 'pins': True, 'shares': True}\n"
        "access = {'files': files, 'calls': calls, 'network': False, 'required': sys.argv[1] == 'True'}\n"
        "limits = dict.fromkeys(('address_space', 'cpu_seconds', 'file_size', 'processes', 'open_files'))\n"
        "print(confine.confine({'parent': None, 'nice': 0, 'limits': limits, 'access': access}).landlock)"
    )
    argv = [sys.executable, "-c", program, str(required)]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout == "0\n") is starts
    assert ("needs Landlock" in ran.stderr) is not starts


def test_the_project_stays_closed_where_it_lies_in_a_readable_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, root, data = tmp_path / "opt", tmp_path / "opt/apps/site", tmp_path / "opt/kept"
    for path in (root / "workers", root / "data", data, system / "lib", system / "apps/other"):
        path.mkdir(parents=True)
    (system / "current").symlink_to(root)
    monkeypatch.setattr(spawn, "ROOT", str(root))
    monkeypatch.setattr(spawn, "_SYSTEM_READ", (str(system), str(tmp_path / "nowhere")))
    monkeypatch.setenv("DATA_DIR", str(data))
    reading = spawn._access_policy(Access(), {})["files"]["reading"]
    ours = {path for path in reading if path.startswith(str(tmp_path))}
    open_to_it = {root / "workers", system / "lib", system / "apps/other", tmp_path / "nowhere"}
    assert ours == set(map(str, open_to_it))


def test_the_data_stays_closed_beneath_what_modules_are_found_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("data", "modules"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    reading = spawn._access_policy(Access(), {"PYTHONPATH": str(tmp_path)})["files"]["reading"]
    assert [path for path in reading if path.startswith(str(tmp_path))] == [str(tmp_path / "modules")]


def test_what_is_hidden_stays_closed_beneath_what_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("found", "system"):
        (tmp_path / name).mkdir()
        for file in ("key", "other"):
            (tmp_path / name / file).touch()
    monkeypatch.setattr(spawn, "_SYSTEM_READ", (str(tmp_path / "system"),))
    hidden = tuple(str(tmp_path / name / "key") for name in ("found", "system"))
    reading = spawn._access_policy(Access(hidden=hidden), {"PYTHONPATH": str(tmp_path / "found")})["files"]["reading"]
    ours = {path for path in reading if path.startswith(str(tmp_path))}
    assert ours == {str(tmp_path / name / "other") for name in ("found", "system")}


@needs("landlock")
def test_the_data_of_a_project_in_a_readable_place_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, library = tmp_path / "opt/site/data", tmp_path / "opt/lib"
    for path in (data, library):
        path.mkdir(parents=True)
        (path / "file").write_text("text")
    monkeypatch.setattr(spawn, "_SYSTEM_READ", (*spawn._SYSTEM_READ, str(tmp_path / "opt")))
    monkeypatch.setenv("DATA_DIR", str(data))
    program = (
        "found = []\n"
        f"for path in {[str(data / 'file'), str(library / 'file')]!r}:\n"
        "    try: found.append(open(path).read())\n    except PermissionError: found.append(None)\n"
        "print(json.dumps(found))"
    )
    assert says(program, access=Access()) == [None, "text"]


def test_a_child_that_the_kernel_does_not_end_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def stuck(seconds: float) -> int:
        waited.append(seconds)
        raise subprocess.TimeoutExpired("child", seconds)

    with spawn.spawn([sys.executable, "-c", "pass"]) as child:
        really = child.popen.wait
        monkeypatch.setattr(child.popen, "wait", stuck)
        assert [child.end(0.0), child.end(5.0)] == [-signal.SIGKILL] * 2
    assert waited == [spawn.LEFT]
    really()


def test_children_find_the_measuring_lock_where_their_parent_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They work in another directory, where a relative path would be a lock of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUNINGSITE_MEASURE_LOCK", "locks/measure.lock")
    assert scrubbed()["TUNINGSITE_MEASURE_LOCK"] == str(tmp_path / "locks" / "measure.lock")
