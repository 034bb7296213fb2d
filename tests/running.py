"""A site of real processes in a directory of its own, and a process inside it that answers questions.

Every process carries the directory's name in its environment; `close` ends all of them, whoever started them.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from apps.operations import embedded, queue_address
from tests import zoo
from tests.processes import Answering, alive, eventually
from tuningsite.secret import secret_key

ROOT = Path(__file__).resolve().parents[1]
MANAGE = [sys.executable, str(ROOT / "manage.py")]

_INSIDE = """
import json, os, sys, traceback
os.environ["DJANGO_SETTINGS_MODULE"] = "tuningsite.settings"
import django; django.setup()
from django.contrib.auth import get_user_model
from apps.catalog.models import Network, Target
from apps.catalog.services import create_network
from apps.tuning import services, dispatch
from apps.tuning.models import Checkpoint, Event, Job, Measurement, Outbox, Slot, TuningRun
from apps.tuning.states import State
from workers.messages.spec import Budget
names = dict(globals())
for line in sys.stdin:
    try:
        exec(json.loads(line), names)
        answer = [names.pop("result", None), None]
    except BaseException:
        answer = [None, traceback.format_exc()]
    sys.__stdout__.write(json.dumps(answer, default=str) + "\\n"); sys.__stdout__.flush()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Running:
    """`start`s processes of the site, and knows its own; `close` at last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir(mode=0o700)
        self.port = free_port()
        dropped = {"DJANGO_SETTINGS_MODULE", "REDIS_URL", "DATABASE_URL", "ALLOWED_HOSTS", "PYTHONWARNINGS"}
        self.environment = {name: value for name, value in os.environ.items() if name not in dropped}
        self.environment |= {
            "DATA_DIR": str(self.data),
            "BIND": f"127.0.0.1:{self.port}",
            "TUNINGSITE_MEASURE_LOCK": str(folder / "lock" / "measure.lock"),
            "PYTHONPATH": str(ROOT),
        }
        self.started: list[subprocess.Popen[bytes]] = []
        self._inside: Answering | None = None

    # processes

    def start(self, name: str, *argv: str, cwd: Path = ROOT) -> subprocess.Popen[bytes]:
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True)
        with (logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                env=self.environment,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def log(self, name: str) -> str:
        return (self.folder / "logs" / f"{name}.log").read_text(errors="replace")

    def logs(self) -> str:
        """The ends of all logs, for a failed assertion."""
        files = [*(self.folder / "logs").glob("*"), *(self.data / "logs").glob("*")]
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-2500:]}" for file in files)

    def server(self) -> subprocess.Popen[bytes]:
        password = secret_key(self.data / "queue_password")
        embedded.prepare(self.data, password)
        process = self.start("queue", *embedded.arguments(self.data))
        embedded.wait_until_up(queue_address.url_of(queue_address.socket_path(self.data), password), 10)
        return process

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start_web(self, change: str = "pass") -> None:
        """Starts the site's server, to which `change` is done before, and waits until it answers."""
        code = f"from tuningsite import serve\n{change}\nserve.main()"
        words = ["-b", "127.0.0.1", "-p", str(self.port), "--no-server-name", "tuningsite.asgi:application"]
        self.web = self.start("web", sys.executable, "-c", code, *words)
        eventually(lambda: self.web.poll() is not None or self.answers(), 90, "the server")
        assert self.web.poll() is None, self.logs()  # whoever took its port meanwhile may answer

    def stop_web(self) -> None:
        self.web.terminate()
        self.web.wait(20)

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def memory(self, name: str) -> int:
        """Bytes of the web's process: "VmRSS" now, "VmHWM" at most."""
        return 1024 * int(Path(f"/proc/{self.web.pid}/status").read_text().partition(f"{name}:")[2].split()[0])

    def worker(self, queue: str = "measure") -> subprocess.Popen[bytes]:
        return self.start(queue, sys.executable, "-m", "workers.actors", queue)

    def reconciler(self, every: float = 10.0) -> subprocess.Popen[bytes]:
        return self.start("reconcile", *MANAGE, "reconcile", "--every", str(every))

    def migrate(self) -> None:
        """Puts the database of a new site in place."""
        for name, content in _new_site().items():
            (self.data / name).touch(mode=0o600)
            (self.data / name).write_bytes(content)

    def processes(self) -> dict[int, str]:
        """Everything alive that belongs to this site, but for the one that answers questions."""
        mark = os.fsencode(self.folder)
        mine = {os.getpid(), self._inside.pid if self._inside else 0}
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in mine:
                continue
            with suppress(OSError):
                # The queue's server writes its title over its environment.
                line = (entry / "cmdline").read_bytes()
                if mark in line + (entry / "environ").read_bytes() and alive(int(entry.name)):
                    found[int(entry.name)] = line.replace(b"\0", b" ").decode()[:200]
        return found

    def of(self, part: str) -> list[int]:
        """The pids of processes whose command line ends with these words."""
        return [pid for pid, line in self.processes().items() if line.strip().endswith(part)]

    def children(self) -> list[int]:
        return self.of("-m workers.child")

    def close(self) -> None:
        if self._inside is not None:
            self._inside.close()
        deadline = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.started:
                process.poll()
            time.sleep(0.02)
        for process in self.started:
            process.kill()
            process.wait(5)

    # questions

    def ask(self, code: str):
        """Runs code where the site's models and services are; returns what it leaves in `result`."""
        if self._inside is None:
            inside = [sys.executable, "-c", _INSIDE]
            self._inside = Answering(inside, self.folder / "inside.log", env=self.environment, cwd=ROOT)
        answer, error = self._inside.ask(code)
        assert error is None, error
        return answer

    def prepare(self, network: Path) -> None:
        """An owner, this machine as it would be measured, and a network as it would be inspected."""
        self.migrate()
        self.ask(f"""
owner = get_user_model().objects.create_user("owner")
target = Target.objects.create(
    kind="local", name="test", state="ready", tvm={{"kind": "llvm", "num-cores": 2}}, threads=2,
    peak_flops=1e11, bandwidth=1e10,
)
network = create_network(owner, "tiny.onnx", [open({str(network)!r}, "rb").read()])
Job.objects.all().delete()
Network.objects.update(state="ready", shapes={{"x": [1, 16, 14, 14]}}, inspection={{"inputs": [], "dynamic": []}})
network.refresh_from_db()
""")

    def run(self, trials: int | None = None, seconds: float | None = None, method: str = "random") -> str:
        """The id of a new run's job."""
        return self.ask(f"""
run = services.create_run(owner, network, target, {method!r}, Budget(seconds={seconds!r}, trials={trials!r}))
result = run.job_id
""")

    def job(self, key: str) -> dict:
        return self.ask(f"result = Job.objects.filter(pk={key!r}).values().get()")

    def state(self, key: str) -> str:
        return self.job(key)["state"]

    def measured(self) -> int:
        return self.ask("result = Measurement.objects.count()")

    def request(self, key: str, word: str) -> None:
        self.ask(f"services.request(TuningRun.objects.get(job={key!r}), owner, {word!r})")

    def send(self, key: str, times: int = 1, task: str = "tune", queue: str = "measure") -> None:
        self.ask(f"for _ in range({times}): dispatch.send({queue!r}, {task!r}, {key!r})")

    def assert_nothing_lost_or_doubled(self) -> None:
        """Every number once, no configuration measured twice in a round, and the database whole."""
        found = self.ask("""
from django.db import connection
with connection.cursor() as cursor:
    whole = "ok" if connection.vendor != "sqlite" else cursor.execute("PRAGMA integrity_check").fetchone()[0]
rows = list(Measurement.objects.values_list("run_id", "seq", "operator", "configuration", "round"))
events = list(Event.objects.values_list("run_id", "seq"))
numbers = [(r[0], r[1]) for r in rows] + events
result = [len(rows), len({r[2:] + (r[0],) for r in rows}), len(numbers), len(set(numbers)),
          max((n[1] for n in numbers), default=0), Job.objects.filter(task="tune").values_list("last_seq", flat=True)[0],
          whole]
""")
        rows, configurations, numbers, different, highest, last, whole = found
        assert whole == "ok"
        assert rows == configurations
        assert numbers == different
        assert highest <= last


@cache
def _new_site() -> dict[str, bytes]:
    """The database's files after all migrations: those are made once a process of tests, and take it seconds."""
    with tempfile.TemporaryDirectory(prefix="new-site-") as folder:
        site = Running(Path(folder))
        subprocess.run([*MANAGE, "migrate", "-v", "0", "--skip-checks"], env=site.environment, cwd=ROOT, check=True)
        return {file.name: file.read_bytes() for file in site.data.glob("db.sqlite3*")}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Running]:
    """Everything but the processes: start those a test needs."""
    found = Running(tmp_path)
    try:
        found.prepare(zoo.tiny(tmp_path))
        yield found
    finally:
        found.close()
