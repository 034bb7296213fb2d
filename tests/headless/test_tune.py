"""From a file to an archive on the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests import zoo
from tests.command_line import Told, starter, teller
from workers.headless import tune
from workers.headless.errors import EndedEarly
from workers.headless.profile_table import WORDS
from workers.headless.tune import _takes_long
from workers.messages.spec import Budget
from workers.pipeline.accounts import grouped

pytestmark = pytest.mark.tvm


TOLERANCE = 0.02


def complete(figures: dict[str, Any]) -> bool:
    """Whether the accounts of a profile explain the wall clock within the tolerance."""
    named = sum(seconds for name, seconds in figures["accounts"].items() if name != "unaccounted")
    return bool(abs(figures["seconds"] - named) <= TOLERANCE * figures["seconds"])


def test_the_accounts_of_a_real_run_explain_its_wall_clock(tuning: Any) -> None:
    found = tuning.profile
    assert complete(found), found["accounts"]
    assert sum(found["accounts"].values()) == pytest.approx(found["seconds"], abs=1e-3)
    groups = grouped(found["accounts"])
    assert {"command", "process", "start", "warm-up", "tuning", "artifact"} <= set(groups)
    assert min(groups[name] for name in ("start", "tuning", "artifact")) > 0.1
    known = set(WORDS)
    assert {n for n in found["accounts"] if n not in known and n.partition("/")[2] not in known} == set()
    assert sum(row["configurations"] for row in found["operators"]) == tuning.summary["trials"]
    assert sum(row["gain_ms"] for row in found["operators"]) >= 0
    assert 100 < found["memory"]["peak"]["tuning"] / 2**20 < 2048
    assert "unaccounted" in tuning.said
    assert "memory at its peak" in tuning.said


@pytest.mark.mutation
def test_an_account_that_is_dropped_is_noticed(tuning: Any) -> None:
    kept = {name: seconds for name, seconds in tuning.profile["accounts"].items() if name != "artifact/verify"}
    assert not complete({**tuning.profile, "accounts": kept})


def run_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(folder / "run.py"), *arguments], text=True, capture_output=True, timeout=60, check=False,
        cwd="/", env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH",)},
    )  # fmt: skip


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "metadata.json"
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


def test_what_was_compiled_lies_in_the_archive_alone(tuned: Path) -> None:
    assert sorted(path.name for path in (tuned / "run").iterdir()) == [
        "checkpoint.json", "journal.jsonl", "known.json", "lock", "network.sha256", "spec.json", "tuning_log.jsonl",
    ]  # fmt: skip


def test_the_archive_holds_what_is_needed_to_run_and_to_understand_it(unpacked: Path) -> None:
    names = {path.name for path in unpacked.iterdir()}
    assert {"model.so", "run.py", "metadata.json", "README.txt", "tuning_log.jsonl"} <= names
    assert {"database_workload.json", "database_tuning_record.json"} <= names
    metadata = json.loads((unpacked / "metadata.json").read_text())
    assert metadata["verified"]["passed"]
    assert metadata["latency"]["median"] > 0
    lines = (unpacked / "tuning_log.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["kind"] == "finished"


@pytest.mark.parametrize(
    ("budget", "long"),
    [
        (Budget(seconds=600), True),
        (Budget(seconds=599), False),
        (Budget(trials=8), False),
        (Budget(trials=100_000), True),
        (Budget(min_gain=0.01), True),
        (Budget(target_latency=1e-3), True),
    ],
)
def test_a_run_without_a_limit_in_time_may_be_long(budget: Budget, long: bool) -> None:
    assert _takes_long(budget) == long


def test_the_summary_is_kept_beside_it(tuned: Path) -> None:
    summary = json.loads((tuned / "summary.json").read_text())
    assert summary["verified"]
    assert summary["trials"] >= 24
    assert sum(summary["share"].values()) == pytest.approx(1, abs=0.02)


def test_the_run_script_prints_a_latency_in_a_fresh_process(unpacked: Path) -> None:
    found = run_script(unpacked, "--runs", "5")
    assert found.returncode == 0, found.stderr
    assert " ms a run" in found.stdout
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda m: m["requires"]["cpu_flags"].append("avx9000"), "avx9000"),
        (lambda m: m["versions"].update({"apache-tvm": "0.1.0"}), "apache-tvm 0.1.0"),
        (lambda m: m["versions"].update({"apache-tvm-ffi": "9.9"}), "apache-tvm-ffi 9.9"),
        (lambda m: m["requires"].update(machine="riscv64"), "riscv64"),
    ],
    ids=["flag", "tvm", "ffi", "machine"],
)
def test_the_run_script_refuses_where_it_cannot_work(
    unpacked: Path, change: Callable[[dict[str, Any]], object], word: str
) -> None:
    changed(unpacked, change)
    found = run_script(unpacked)
    assert found.returncode == 3
    assert word in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


@pytest.fixture(scope="module")
def second(told: Told, tuned: Path, zoo_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The --out directory of a run that knows the first and tunes what the papers tune, and what was said."""
    out = tmp_path_factory.mktemp("second")
    arguments = ("--operators", "compute", "--trials", 16, "--seed", 3, "--out", out, "--records", tuned)
    code, _, errors = told("tune", zoo.tiny(zoo_cache), *arguments)
    assert code == 0, errors
    return out, errors


def log(out: Path) -> list[dict[str, Any]]:
    """Of a run: its lines."""
    return [json.loads(line) for line in (out / "run" / "tuning_log.jsonl").read_text().splitlines()]


def measured(out: Path) -> list[dict[str, Any]]:
    return [row for row in log(out) if row["kind"] == "measurement"]


def test_a_second_run_begins_with_the_best_of_the_first(tuned: Path, second: tuple[Path, str]) -> None:
    out, errors = second
    first, figures = (json.loads((folder / "summary.json").read_text()) for folder in (tuned, out))
    assert (first["operators_known"], figures["operators_known"]) == (0, figures["operators"])
    assert f"{figures['operators']} of {figures['operators']} operators known from earlier runs" in errors
    before, after = measured(tuned), measured(out)
    for operator in range(figures["operators"]):
        mine = [row for row in before if row["operator"] == operator and row["seconds"]]
        best = min(mine, key=lambda row: float(row["seconds"]))
        begun = next(row for row in after if row["operator"] == operator)
        assert (begun["choices"], begun["origin"]) == (best["choices"], "known")


def test_only_convolutions_and_dense_layers_get_slots_and_the_network_is_whole(second: tuple[Path, str]) -> None:
    out, _ = second
    assert (out / "tiny.zip").is_file()
    operators = next(event["operators"] for event in log(out) if event["kind"] == "operators")
    names = {row["index"]: row["name"] for row in operators}
    slots = {names[event["operator"]] for event in log(out) if event["kind"] == "slot"}
    assert slots
    assert all("conv" in name or "matmul" in name or "dense" in name for name in slots)
    assert any("pool" in name for name in names.values())


def test_a_directory_with_a_run_is_refused_and_resume_goes_on(
    told: Told, tuned: Path, zoo_cache: Path, tmp_path: Path
) -> None:
    tuned = shutil.copytree(tuned, tmp_path / "out")
    arguments = ("tune", zoo.tiny(zoo_cache), "--out", tuned)
    code, _, errors = told(*arguments, "--trials", 40)
    assert code == 2
    assert "--resume" in errors.splitlines()[-1]
    before = json.loads((tuned / "summary.json").read_text())["trials"]
    code, _, errors = told(*arguments, "--trials", before + 5, "--resume")
    assert code == 0, errors
    assert json.loads((tuned / "summary.json").read_text())["trials"] >= before + 5
    code, _, errors = told(*arguments, "--trials", 40, "--resume", "--seed", 5)
    assert code == 2
    assert "seed" in errors.splitlines()[-1]


def test_a_run_without_an_archive_is_given_one_by_resume(told: Told, zoo_cache: Path, tmp_path: Path) -> None:
    """Of a link to a network, which is called otherwise then."""
    (tmp_path / "blob").write_bytes(zoo.tiny(zoo_cache).read_bytes())
    network, out = tmp_path / "first.onnx", tmp_path / "out"
    network.symlink_to("blob")
    code, said, errors = told("tune", network, "--out", out, "--trials", 12, "--no-archive", "--resume")
    assert code == 0, errors
    assert "no run that measured anything is in" in said
    assert "--resume makes the archive" in said
    assert not list(out.glob("*.zip"))
    network = network.rename(tmp_path / "second.onnx")
    code, said, errors = told("tune", network, "--out", out, "--resume")
    assert code == 0, errors
    assert "a new one begins" not in said
    assert json.loads((out / "run" / "spec.json").read_text())["budget"]["trials"] == 12
    assert (out / "second.zip").is_file()


BROKEN = (
    "import sys; from workers.headless import __main__, tune; from workers.supervision import Ending; "
    "tune.confined = lambda *_: Ending('crashed', 'exit', 'it fell over'); sys.exit(__main__.main())"
)
"""The command, whose every attempt breaks off."""


def test_a_run_that_breaks_off_leaves_an_archive_of_what_it_found_and_the_reason(
    told: Told, machine_cache: Path, zoo_cache: Path, tmp_path: Path
) -> None:
    """After hours, perhaps, and a run that goes on would break off again."""
    arguments = ("tune", zoo.tiny(zoo_cache), "--out", tmp_path, "--trials", 12, "--resume")
    broken = teller(starter(["-c", BROKEN], machine_cache), 280)
    code, said, errors = broken(*arguments)
    assert code == 1
    assert "it fell over" in errors, "and nothing else can be said of a run that measured nothing"
    code, _, errors = told(*arguments, "--no-archive")
    assert code == 0, errors
    code, _, errors = broken(*arguments, "--no-archive")
    assert code == 1
    assert "it fell over" in errors
    code, said, errors = broken(*arguments)
    assert code == 1, errors
    assert said.startswith("the run broke off: 3 attempts in a row saved no measurement; the last one: it fell over\n")
    assert f"archive: {tmp_path / 'tiny.zip'}\nthe run broke off before its end" in said
    assert (tmp_path / "tiny.zip").is_file()
    assert json.loads((tmp_path / "summary.json").read_text())["reason"] == "crashed"


def truncated(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-2000])
    return path


def mistakes() -> dict[str, Callable[[Path, Path], list[object]]]:
    """Arguments by what is wrong with them; given a folder of its own and the tiny network."""
    return {
        "missing file": lambda folder, tiny: [folder / "nowhere.onnx"],
        "folder": lambda folder, tiny: [folder],
        "empty file": lambda folder, tiny: [_written(folder / "empty.onnx", b"")],
        "truncated": lambda folder, tiny: [truncated(_written(folder / "cut.onnx", tiny.read_bytes()))],
        "wrong extension": lambda folder, tiny: [_written(folder / "notes.txt", b"hello\n" * 50)],
        "dynamic": lambda folder, tiny: [zoo.tiny_residual(folder)],
        "shape of other rank": lambda folder, tiny: [tiny, "--shape", "x=1,16"],
        "shape of zero": lambda folder, tiny: [tiny, "--shape", "x=0,16,14,14"],
        "shape that does not fit": lambda folder, tiny: [tiny, "--shape", "x=1,3,14,14"],
        "method": lambda folder, tiny: [tiny, "--method", "lottery"],
        "part": lambda folder, tiny: [tiny, "--part", "scheduler=lottery"],
        "role": lambda folder, tiny: [tiny, "--part", "cook=anna"],
        "trials": lambda folder, tiny: [tiny, "--trials", "0"],
        "gain without its sign": lambda folder, tiny: [tiny, "--min-gain", "0.01"],
        "gain of everything": lambda folder, tiny: [tiny, "--min-gain", "100%"],
        "seed": lambda folder, tiny: [tiny, "--seed", "-1"],
        "unsupported": lambda folder, tiny: [_unsupported(folder / "odd.onnx")],
        "name that is no text": lambda folder, tiny: [
            shutil.copy(tiny, os.fsdecode(bytes(folder) + b"/mod\xe8le.onnx"))
        ],
    }


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _unsupported(path: Path) -> Path:
    node = onnx.helper.make_node("StringNormalizer", ["x"], ["y"])
    model = zoo.model_of([node], {"x": [1]}, {"y": [1]}, [])
    return _written(path, model.SerializeToString())


@pytest.mark.parametrize("mistake", list(mistakes()))
def test_a_mistake_is_one_clear_line_and_exit_code_2(
    told_here: Told, zoo_cache: Path, tmp_path: Path, mistake: str
) -> None:
    arguments = mistakes()[mistake](tmp_path, zoo.tiny(zoo_cache))
    if "--trials" not in arguments:
        arguments += ["--trials", "5"]
    code, said, errors = told_here("tune", *arguments, "--out", tmp_path / "out")
    assert code == 2, f"{code}: {errors[-1500:]}"
    assert "Traceback" not in errors
    last = errors.strip().splitlines()[-1]
    assert len(last) > 20
    assert said == ""


def test_a_directory_in_use_is_one_clear_line(told: Told, zoo_cache: Path, tmp_path: Path) -> None:
    from workers.supervision import DirectoryJournal

    with DirectoryJournal(tmp_path / "run"):
        code, _, errors = told("tune", zoo.tiny(zoo_cache), "--trials", 5, "--out", tmp_path)
    assert code == 2, errors[-1500:]
    assert "Traceback" not in errors
    assert "in use" in errors.splitlines()[-1]


def test_an_archive_is_asked_for_again_where_the_line_to_a_device_breaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(order: Any, hear: Any) -> Any:
        left.pop()
        if left:
            raise EndedEarly("the compile process ended early: it exited with status 1\na traceback")
        return {"kind": "result"}

    monkeypatch.setattr(tune, "ask", breaks)
    left = [1, 2, 3]
    assert tune._asked({}, lambda _: None, (0.0, 0.0)) == {"kind": "result"}
    assert capsys.readouterr().out.count("ended early: it exited with status 1; once more in 0 s\n") == 2
    left = [1, 2, 3]
    with pytest.raises(EndedEarly):
        tune._asked({}, lambda _: None, (0.0,))


def test_a_zip_of_the_users_is_not_replaced(told: Told, zoo_cache: Path, tmp_path: Path) -> None:
    network = zoo.tiny(zoo_cache)
    kept = _written(tmp_path / f"{network.stem}.zip", b"the network, as it came")
    code, _, errors = told("tune", network, "--trials", 5, "--out", tmp_path)
    assert (code, kept.read_bytes()) == (2, b"the network, as it came")
    assert f"{kept} is there, and no run: move it away" in errors.splitlines()[-1]


def test_a_file_where_the_directory_should_be_is_one_clear_line(told: Told, zoo_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, errors = told("tune", zoo.tiny(zoo_cache), "--trials", 5, "--out", tmp_path / "file")
    assert code == 2
    assert "Traceback" not in errors
