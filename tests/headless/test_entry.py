"""How a command ends that the system refuses something."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from workers.headless.entry import run_command

ROOT = Path(__file__).resolve().parents[2]


def ended(run: Callable[[argparse.Namespace], int], out: str = "there") -> int:
    command = SimpleNamespace(add_arguments=lambda parser: parser.add_argument("--out"), run=run)
    return run_command(
        argparse.ArgumentParser(), [("write", lambda: command, "writes")], "all is kept", ["write", "--out", out]
    )


def full(arguments: argparse.Namespace) -> int:
    with open("/dev/full", "w") as file:
        file.write("x")
    return 0


def test_a_full_disk_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(full) == 1
    said = capsys.readouterr().err
    assert said.startswith("there: No space left on device; make room")
    assert said.endswith("; all is kept\n")
    assert said.count("\n") == 1


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(lambda arguments: bool(tmp_path.read_text())) == 1
    said = capsys.readouterr().err
    assert said == f"{tmp_path}: Is a directory; put that right; all is kept\n"


def test_a_benchmark_that_has_no_room_for_a_cell_says_so(tmp_path: Path) -> None:
    program = (
        "import argparse, resource, sys; from pathlib import Path; from types import SimpleNamespace\n"
        "from workers.benchmarks.cells import Cells, Key\n"
        "from workers.headless.entry import run_command\n"
        "key = Key('speed', 'n', 'ours', 0, 'NHWC', '1 minute', 'cpu', 2, '1')\n"
        "run = lambda arguments: Cells(Path(arguments.out)).keep(key, 'tiny', {'state': 'done', 'rows': 'x' * 9000})\n"
        "command = SimpleNamespace(add_arguments=lambda parser: parser.add_argument('--out'), run=run)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "sys.exit(run_command(argparse.ArgumentParser(), [('keep', lambda: command, '')], 'cells are kept', sys.argv[1:]))"
    )
    argv = [sys.executable, "-c", program, "keep", "--out", tmp_path]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran.stderr
    assert ran.stderr.startswith(f"{tmp_path}: File too large; make room")
    assert not list(tmp_path.glob("*.json"))


SAYS = (
    "import argparse, sys; from types import SimpleNamespace\n"
    "from workers.headless.entry import run_command\n"
    "command = SimpleNamespace(add_arguments=lambda parser: None, run=lambda _: print('\u00b1 1' * int(sys.argv.pop())) or 0)\n"
    "sys.exit(run_command(argparse.ArgumentParser(), [('say', lambda: command, '')], 'all is kept', ['say']))"
)


def test_signs_that_a_terminal_lacks_are_spelled_out() -> None:
    argv, ascii_only = [sys.executable, "-c", SAYS, "1"], {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(argv, cwd=ROOT, env=ascii_only, capture_output=True, timeout=60, check=True)
    assert (ran.stdout, ran.stderr) == (b"\\xb1 1\n", b"")


@pytest.mark.parametrize("count", ["1", "100000"])
def test_where_nobody_reads_on_a_command_ends_without_a_word(count: str) -> None:
    """At its end, when what it said is sent, and in the middle."""
    read, write = os.pipe()
    os.close(read)
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    argv = [sys.executable, "-c", SAYS, count]
    with open(write, "wb") as out:
        ran = subprocess.run(argv, cwd=ROOT, env=buffered, stdout=out, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_of_the_commands_only_the_one_that_is_named_is_loaded(tmp_path: Path) -> None:
    """The run that is paused measures meanwhile, and would feel what numpy and the engine take to load."""
    program = (
        "import sys; from workers.headless.__main__ import main\n"
        "print(main(['control', sys.argv[1], 'pause']), {'numpy', 'onnx', 'workers.headless.tune'} & set(sys.modules))"
    )
    argv = [sys.executable, "-c", program, str(tmp_path)]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert (ran.stdout, ran.stderr.count("no run was started there")) == ("2 set()\n", 1)


@pytest.mark.parametrize(
    ("room", "command", "word"),
    [
        ("headless", [], "record measurements"),
        ("headless", ["tune"], "--min-gain"),
        ("headless", ["control"], "pause"),
        ("headless", ["landscape"], "calibrate"),
        ("benchmarks", [], "papers' claims"),
        ("benchmarks", ["speed"], "--out"),
        ("benchmarks", ["methods"], "--claims"),
        ("benchmarks", ["latency"], "--out"),
    ],
)
def test_every_command_says_what_it_takes(
    room: str, command: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        import_module(f"workers.{room}.__main__").main([*command, "--help"])
    assert ended.value.code == 0
    assert word in capsys.readouterr().out
