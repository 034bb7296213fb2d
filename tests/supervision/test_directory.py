import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workers.messages.channel import LeaseLost
from workers.supervision import DirectoryJournal
from workers.supervision.directory import DamagedJournal, DirectoryBusy

ROOT = Path(__file__).resolve().parents[2]


def batch(number: int) -> dict[str, Any]:
    return {"kind": "batch", "clock": float(number), "measurements": [{"number": number}], "spent": {"build": number}}


def slot(number: int, checkpoint: Any = None) -> dict[str, Any]:
    times = {"clock": float(number), "began": float(number - 1), "ended": float(number)}
    decision = {"rule": "x", "decided_by_belief": True, "waited": 0.25}
    return {
        "kind": "slot",
        "slot": number,
        "operator": 2,
        "decision": decision,
        "trials": 1,
        "checkpoint": checkpoint,
        **times,
    }


def test_history_is_the_last_checkpoint_and_everything_measured(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path) as journal:
        journal.write([batch(0), slot(1, {"state": 1}), batch(2)])
        journal.write([slot(3, {"state": 3}), batch(4), slot(5), batch(6)])
    with DirectoryJournal(tmp_path) as journal:
        history = journal.history()
    assert history.checkpoint == {"state": 3}
    assert [measurement["number"] for measurement in history.measurements] == [0, 2, 4, 6]
    assert history.slots == [(2, 0.75, {"decided_by_belief": True}, 1)] * 3, (
        "of a decision what the next attempt goes on from"
    )
    assert (history.clock, history.spent) == (6.0, {"build": 6})


def test_a_journal_grows_by_its_events_and_not_by_its_checkpoints(tmp_path: Path) -> None:
    state = {"state": ["x" * 1000] * 100}
    with DirectoryJournal(tmp_path) as journal:
        for number in range(50):
            journal.write([slot(number, state)])
        assert "checkpoint" not in (tmp_path / "journal.jsonl").read_text()
        assert journal.history().checkpoint == state
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 120_000


def test_a_checkpoint_that_finds_no_room_leaves_the_one_before_and_the_events(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path) as journal:
        journal.write([slot(1, {"state": 1})])
        (tmp_path / "checkpoint.json.partial").mkdir()
        journal.write([slot(2, {"state": 2})])
        assert journal.history().checkpoint == {"state": 1}
        assert len(list(journal.events())) == 2


def test_a_checkpoint_that_knows_more_than_its_journal_is_none(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path) as journal:
        journal.write([batch(0)])
        before = (tmp_path / "journal.jsonl").read_bytes()
        journal.write([slot(1, {"state": 1})])
    (tmp_path / "journal.jsonl").write_bytes(before)
    with DirectoryJournal(tmp_path) as journal:
        assert journal.history().checkpoint is None


def test_a_journal_from_when_checkpoints_stood_in_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(slot(n, {"state": n})) + "\n" for n in (1, 2)))
    with DirectoryJournal(tmp_path) as journal:
        assert journal.history().checkpoint == {"state": 2}
        journal.write([slot(3, {"state": 3})])
        assert journal.history().checkpoint == {"state": 3}


def test_a_run_that_begins_anew_knows_no_checkpoint(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path) as journal:
        journal.write([slot(1, {"state": 1})])
        journal.clear()
        assert journal.history().checkpoint is None


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_text("{")
    with pytest.raises(DamagedJournal, match=r"checkpoint\.json: .*; remove it"):
        DirectoryJournal(tmp_path)


def test_an_empty_directory_has_an_empty_history(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path / "new" / "run") as journal:
        assert journal.history().checkpoint is None
        assert journal.history().measurements == []


@pytest.mark.parametrize("torn", ['{"kind":"ba', "x" * 200_000, "\x00" * 5000, "{"])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: str) -> None:
    with DirectoryJournal(tmp_path) as journal:
        journal.write([batch(0)])
    with open(tmp_path / "journal.jsonl", "a") as file:
        file.write(torn)
    with DirectoryJournal(tmp_path) as journal:
        journal.write([batch(1)])
        assert [event["clock"] for event in journal.events()] == [0.0, 1.0]


def test_a_file_with_nothing_but_a_torn_line_is_empty(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"kind"')
    with DirectoryJournal(tmp_path) as journal:
        assert list(journal.events()) == []


@pytest.mark.mutation
def test_without_mending_the_torn_line_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DirectoryJournal, "_mend", lambda self: os.fstat(self._file).st_size)
    (tmp_path / "journal.jsonl").write_text('{"kind":"ba')
    with pytest.raises(DamagedJournal, match="line 1"):
        DirectoryJournal(tmp_path)


@pytest.mark.parametrize("broken", [b"broken", b"\xff"], ids=["no JSON", "no text"])
def test_a_broken_line_in_the_middle_is_an_error_that_names_it(broken: bytes, tmp_path: Path) -> None:
    first, last = (json.dumps(batch(number)).encode() for number in range(2))
    (tmp_path / "journal.jsonl").write_bytes(first + b"\n" + broken + b"\n" + last + b"\n")
    for _ in range(2):  # a refused directory is not left locked
        with pytest.raises(DamagedJournal, match="line 2"):
            DirectoryJournal(tmp_path)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path), pytest.raises(DirectoryBusy, match="in use"):
        DirectoryJournal(tmp_path)
    DirectoryJournal(tmp_path).close()


def test_a_closed_journal_has_lost_its_lease(tmp_path: Path) -> None:
    journal = DirectoryJournal(tmp_path)
    journal.close()
    journal.close()
    with pytest.raises(LeaseLost):
        journal.write([batch(0)])


def test_the_control_file_says_what_the_user_wants(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path) as journal:
        assert journal.heartbeat() == "continue"
        for word, meaning in (("pause\n", "pause"), ("stop", "stop"), ("dance", "continue")):
            (tmp_path / "control").write_text(word)
            assert journal.heartbeat() == meaning
    (tmp_path / "control").write_text("stop")
    with DirectoryJournal(tmp_path) as journal:
        assert journal.heartbeat() == "continue"


def test_a_full_disk_keeps_the_journal_whole(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys; from workers.supervision import DirectoryJournal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "journal = DirectoryJournal(sys.argv[1])\n"
        "small, large = ({'kind': 'log', 'text': 'x' * size} for size in (10, 9000))\n"
        "journal.write([small])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "try: journal.write([large])\n"
        "except OSError: journal.write([small]); print('refused', len(list(journal.events())))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "refused 2\n"


def test_thirty_kills_while_writing_lose_nothing_acknowledged(tmp_path: Path) -> None:
    program = (
        "import sys; from workers.supervision import DirectoryJournal\n"
        "journal = DirectoryJournal(sys.argv[1]); number = journal.trials\n"
        "while True:\n"
        "    fresh = range(number, number + 20)\n"
        "    journal.write([{'kind': 'batch', 'clock': float(n), 'measurements': [{'n': n}]} for n in fresh])\n"
        "    number += 20; print(number, flush=True)\n"
    )
    for attempt in range(30):
        with subprocess.Popen(
            [sys.executable, "-S", "-c", program, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(1 + attempt % 7)]
            writer.kill()
            acknowledged += [int(line) for line in writer.stdout.readlines() if line.endswith("\n")]
        with DirectoryJournal(tmp_path) as journal:
            numbers = [one["n"] for event in journal.events() for one in event["measurements"]]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= acknowledged[-1]
