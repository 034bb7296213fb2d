"""Real children, real signals: what the supervisor relays, what it ends, and what it says about it."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.processes import comes_true
from workers.messages.channel import LeaseLost
from workers.sandbox.spawn import Access, Limits, spawn
from workers.sandbox.tree import Tree
from workers.supervision import Deadlines, DirectoryJournal, Ending, supervise
from workers.supervision.footprint import Bounds, Footprint, Violation
from workers.supervision.ports import Speech

TOY = [sys.executable, str(Path(__file__).with_name("toy_child.py"))]
ROOT = Path(__file__).resolve().parents[2]
QUICK = Deadlines(heartbeat=0.05, batch=0.05, turn=0.5, pause=0.5, stop=0.5, finish=0.5)
SILENT = Deadlines(heartbeat=0.05, batch=0.05, silence=5.0)  # a start counts: nobody hears of it before its first event
PATIENT = Deadlines(heartbeat=0.05, batch=0.05)


class MemoryJournal:
    """The journal's in-memory twin; answers from `wanted` and loses the lease after `lease` events."""

    def __init__(self, lease: float = float("inf")) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.wanted = "continue"
        self.beats = 0
        self.lease = lease

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for batch in self.batches for event in batch]

    def write(self, events: Any) -> None:
        if len(self.events) >= self.lease:
            raise LeaseLost
        self.batches.append(list(events))

    def heartbeat(self) -> Any:
        self.beats += 1
        return self.wanted


class Later(MemoryJournal):
    """Wants `word` so many seconds after the child was first heard of: how long a start takes is the machine's."""

    def __init__(self, word: str, seconds: float) -> None:
        super().__init__()
        self.timer = threading.Timer(seconds, setattr, (self, "wanted", word))

    def write(self, events: Any) -> None:
        if not self.batches:
            self.timer.start()
        super().write(events)


def run(journal: Any, vice: str, deadlines: Deadlines = PATIENT, **order: Any) -> Ending:
    options = {name: order.pop(name) for name in ("limits", "bounds", "env", "speech") if name in order}
    return supervise({"vice": vice, **order}, journal, argv=TOY, deadlines=deadlines, **options)


def test_every_event_arrives_once_and_in_order() -> None:
    journal = MemoryJournal()
    ending = run(journal, "counting", events=20_000)
    numbers = [event["number"] for event in journal.events if event["kind"] == "batch"]
    assert numbers == list(range(20_000))
    assert (ending.kind, len(journal.events), ending.exit_code) == ("finished", 20_001, 0)
    assert max(map(len, journal.batches)) <= 256
    assert len(journal.batches) < 200


def test_an_order_larger_than_a_pipe_arrives_whole() -> None:
    journal = MemoryJournal()
    assert run(journal, "telling", padding="x" * 5_000_000).kind == "finished"
    assert journal.events[0]["order_size"] == 5_000_000


def test_what_a_run_found_is_not_held_while_its_attempt_goes_on() -> None:
    """100,000 measurements are 110 MB, for days."""
    journal = MemoryJournal()
    measurements: list[Any] = [{"operator": 0}] * 1000
    slots: list[Any] = [(0, 1.0, {})]
    run(journal, "telling", measurements=measurements, slots=slots)
    assert journal.events[0]["measured"] == 1000, "the child has them"
    assert (measurements, slots) == ([], [])


def test_heartbeats_come_while_the_child_works() -> None:
    journal = Later("stop", 0.6)
    run(journal, "steady")
    assert journal.beats >= 5


STEPS = (
    "sandbox.spawn._access_policy",
    "supervision.supervisor.guarded",
    "supervision.wires.selectors.DefaultSelector",
)


@pytest.mark.parametrize("step", STEPS)
def test_a_start_that_fails_leaves_no_descriptor_open(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(f"workers.{step}", full)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="Too many open files"):
        supervise({"vice": "steady"}, MemoryJournal(), argv=TOY, access=Access())
    assert os.listdir("/proc/self/fd") == before


def test_what_was_sent_before_a_kill_is_kept() -> None:
    journal = MemoryJournal()
    ending = run(journal, "counting", events=1000, die=True)
    assert (ending.kind, ending.cause, ending.exit_code) == ("crashed", "signal", -signal.SIGKILL)
    assert len(journal.events) == 1000


def test_killing_the_child_leaves_no_grandchild(crowd: Any) -> None:
    class Assassin(MemoryJournal):
        def write(self, events: Any) -> None:
            super().write(events)
            for event in events:
                if event["kind"] == "log":
                    assert comes_true(lambda: len(crowd.pids()) == 3, 10)  # the worker starts its compiler when it may
                    os.kill(int(event["text"]), signal.SIGKILL)

    journal = Assassin()
    ending = run(journal, "family", nonce=crowd.nonce)
    assert (ending.kind, ending.cause) == ("crashed", "signal")
    assert "SIGKILL" in ending.detail
    assert comes_true(lambda: not crowd.pids(), 5)


def supervisor(directory: Path, nonce: str, guarded: bool = True) -> subprocess.Popen[bytes]:
    """A supervising process of its own over a `family`."""
    program = (
        "import sys, contextlib, workers.supervision.supervisor as s\n"
        "from workers.supervision import DirectoryJournal\n"
        f"if not {guarded}: s.guarded = lambda process: contextlib.nullcontext()\n"
        "s.supervise({'vice': 'family', 'nonce': sys.argv[2]}, DirectoryJournal(sys.argv[1]), argv=sys.argv[3:])"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, directory, nonce, *TOY], cwd=ROOT, stderr=subprocess.DEVNULL
    )


def child_of(directory: Path) -> int | None:
    journal = directory / "journal.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    texts = [line for line in lines if '"log"' in line]
    return int(texts[0].partition('"text":"')[2].partition('"')[0]) if texts else None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ending_the_supervisor_leaves_nothing(number: int, tmp_path: Path, crowd: Any) -> None:
    process = supervisor(tmp_path, crowd.nonce)
    assert comes_true(lambda: child_of(tmp_path) is not None, 20)
    child = child_of(tmp_path)
    # The supervisor, the worker, the worker's compiler, the escaped one.
    assert comes_true(lambda: len(crowd.pids()) == 4, 10)
    process.send_signal(number)
    process.wait(5)
    assert comes_true(lambda: not crowd.pids() and not os.path.exists(f"/proc/{child}/cwd"), 5)


@pytest.mark.mutation
def test_without_the_watchdog_the_orphan_check_notices(tmp_path: Path, crowd: Any) -> None:
    process = supervisor(tmp_path, crowd.nonce, guarded=False)
    assert comes_true(lambda: child_of(tmp_path) is not None, 20)
    assert comes_true(lambda: len(crowd.pids()) == 4, 10)
    process.kill()
    process.wait(5)
    assert comes_true(lambda: len(crowd.pids()) == 2, 5)  # the compiler and the escaped one have nobody to end them
    assert not comes_true(lambda: not crowd.pids(), 0.5)


@pytest.mark.parametrize(("word", "kind"), [("turn", "paused"), ("pause", "paused"), ("stop", "stopped")])
def test_a_child_ends_by_itself_when_told(word: str, kind: str) -> None:
    journal = Later(word, 0.3)
    ending = run(journal, "steady")
    assert (ending.kind, ending.exit_code) == (kind, 0)
    assert journal.events[-1]["reason"] == kind


@pytest.mark.parametrize(("word", "kind"), [("turn", "paused"), ("pause", "paused"), ("stop", "stopped")])
def test_a_child_that_ignores_everything_is_killed_after_its_grace(word: str, kind: str) -> None:
    class Impatient(MemoryJournal):
        def write(self, events: Any) -> None:
            super().write(events)
            self.wanted = word
            self.asked = getattr(self, "asked", time.monotonic())

    journal = Impatient()
    ending = run(journal, "stubborn", QUICK)
    assert (ending.kind, ending.exit_code) == (kind, -signal.SIGKILL)
    assert time.monotonic() - journal.asked < 15  # half a second's grace, as much for SIGTERM, a slow machine


@pytest.mark.parametrize("word", ["pause", "stop"])
def test_the_user_does_not_wait_for_the_grace_of_a_turn(word: str) -> None:
    """Others do: what is in hand is finished first."""

    class Changing(MemoryJournal):
        words = iter(["turn"] * 4 + [word] * 1000)

        def heartbeat(self) -> Any:
            return next(self.words)

    began = time.monotonic()
    ending = run(Changing(), "stubborn", replace(QUICK, turn=60.0))
    assert (ending.kind, ending.exit_code) == ({"pause": "paused", "stop": "stopped"}[word], -signal.SIGKILL)
    assert time.monotonic() - began < 10


def test_memory_of_the_whole_tree_is_watched() -> None:
    ending = run(MemoryJournal(), "hoarding", bounds=Bounds(resident=300 << 20))
    assert (ending.kind, ending.cause) == ("crashed", "memory")
    assert "300 MiB allowed" in ending.detail


SHARING = """
import os, time
held = b"x" * (64 << 20)
for _ in range(5):
    if not os.fork(): break
os.write(1, b"x")
time.sleep(600)
"""


def test_memory_that_forks_share_ends_no_tree_that_has_room_for_it_once() -> None:
    with spawn([sys.executable, "-c", SHARING], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(6):
            child.stdout.read(1)
        Footprint(child.tree, Bounds(resident=200 << 20, shared=True), time.monotonic).check()
        assert child.tree.resident() > 6 * (64 << 20)
        with pytest.raises(Violation, match="more than the 60 MiB allowed") as broken:
            Footprint(child.tree, Bounds(resident=60 << 20, shared=True), time.monotonic).check()
        with pytest.raises(Violation, match="more than the 200 MiB allowed"):
            Footprint(child.tree, Bounds(resident=200 << 20), time.monotonic).check()
    assert broken.value.cause == "memory"


def test_memory_that_is_shared_is_looked_at_page_by_page_now_and_then_and_when_it_has_grown() -> None:
    now, looks = [0.0], []

    class Sharing:
        def refresh(self) -> list[int]:
            return []

        def resident(self) -> int:
            return 200 if now[0] < 11.9 else 206

        def proportional(self) -> int:
            looks.append(now[0])
            now[0] += 0.1
            return 100

    footprint = Footprint(Sharing(), Bounds(resident=100, shared=True), lambda: now[0])  # type: ignore[arg-type]
    while now[0] < 20.0:
        footprint.check()
        now[0] += 0.3
    assert looks == pytest.approx([0.0, 5.2, 10.4, 12.0, 17.2])


CROWD = """
import os, threading, time
for _ in range(3):
    if not os.fork(): os._exit(0)
for _ in range(3): threading.Thread(target=time.sleep, args=(600,)).start()
os.write(1, b"x")
time.sleep(600)
"""


def test_a_tree_of_too_many_processes_and_threads_is_ended() -> None:
    """Those that nobody waits for count: each has a number, of which a machine has so many."""
    with spawn([sys.executable, "-c", CROWD], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read(1)
        Footprint(child.tree, Bounds(threads=7), time.monotonic).check()
        with pytest.raises(Violation, match="had 7 processes and threads, more than the 6 allowed") as broken:
            Footprint(child.tree, Bounds(threads=6), time.monotonic).check()
    assert broken.value.cause == "processes"


def litter(tmp_path: Path, total: float = 15.0, **order: Any) -> Ending:
    access = Access(read=(str(Path(__file__).parent),), write=(str(tmp_path),), network=False)
    return supervise(
        {"vice": "littering", **order}, MemoryJournal(), argv=TOY, access=access, bounds=Bounds(disk=20 << 20), cwd=tmp_path,
        deadlines=Deadlines(heartbeat=0.05, batch=0.05, total=total),
    )  # fmt: skip


@pytest.mark.parametrize(
    "order", [{"size": 1 << 20}, {"size": 1 << 20, "removed": True}, {"size": 0}], ids=["large", "removed", "empty"]
)
def test_all_files_together_are_watched(order: Any, tmp_path: Path) -> None:
    ending = litter(tmp_path, **order)
    assert (ending.kind, ending.cause) == ("crashed", "disk"), ending
    assert "20 MiB of files" in ending.detail


@pytest.mark.mutation
def test_without_a_look_at_the_files_nobody_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.supervision.footprint.kept", lambda *_: 0)
    # Names alone would be too many: what is written is nothing, and a look sees it after two seconds.
    assert litter(tmp_path, total=3.0, size=0).cause == "time"


def test_a_tree_of_many_files_is_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = [0.0], []

    def slow(*_: Any) -> int:
        looks.append(now[0])
        now[0] += 0.5
        return 0

    class Lonely:
        def refresh(self) -> list[int]:
            return []

    monkeypatch.setattr("workers.supervision.footprint.kept", slow)
    footprint = Footprint(Lonely(), Bounds(disk=1), lambda: now[0])  # type: ignore[arg-type]
    while now[0] < 100.0:
        footprint.check()
        now[0] += 0.25
    assert looks == [0.0, 25.5, 51.0, 76.5]


def test_an_address_space_limit_shows_in_the_log() -> None:
    ending = run(MemoryJournal(), "hoarding", limits=Limits(address_space=400 << 20))
    assert (ending.kind, ending.cause) == ("crashed", "exit")
    assert "MemoryError" in ending.log


def test_processor_time_is_limited() -> None:
    ending = run(MemoryJournal(), "spinning", limits=Limits(cpu_seconds=1))
    assert (ending.kind, ending.cause) == ("crashed", "cpu")


def test_a_hang_is_ended_and_what_came_before_is_kept() -> None:
    journal = MemoryJournal()
    ending = run(journal, "hanging", SILENT)
    assert (ending.kind, ending.cause, len(journal.events)) == ("crashed", "silent", 1)


def test_what_could_not_be_ended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the kernel holds, which cannot be had here: it is said to be there, and is not."""
    end = Tree.end
    monkeypatch.setattr(Tree, "end", lambda *arguments: [*end(*arguments), 4711])
    brief = Deadlines(heartbeat=0.05, total=0.5)
    assert "not to be ended: processes 4711" in run(MemoryJournal(), "hanging", brief).log


def test_the_whole_attempt_can_have_a_deadline() -> None:
    ending = run(MemoryJournal(), "steady", Deadlines(heartbeat=0.05, total=0.5))
    assert (ending.kind, ending.cause) == ("crashed", "time")


def test_endless_output_is_no_sign_of_life_and_takes_no_room() -> None:
    ending = run(MemoryJournal(), "chattering", SILENT)
    assert (ending.kind, ending.cause) == ("crashed", "silent")
    assert len(ending.log) == 64 << 10


@pytest.mark.parametrize(
    "text",
    [
        "not json\n",
        '{"kind": "unheard"}\n',
        "[1]\n",
        "\xff\udc00\n".encode("utf-8", "replace").decode(),
        '{"kind": "log", "clock": 0, "value": NaN}\n',
        '{"kind": "log", "clock": 0, "value": 1e999}\n',
        '{"kind": "log", "clock": Infinity}\n',
        "[" * 100_000 + "\n",
        '{"kind": []}\n',
        '{"kind": "log", "clock": 1' + "0" * 400 + "}\n",
    ],
)
def test_a_line_that_is_no_event_ends_the_child(text: str) -> None:
    journal = MemoryJournal()
    ending = run(journal, "raw", text=text)
    assert (ending.kind, ending.cause) == ("crashed", "protocol")
    assert [event["number"] for event in journal.events] == [0]


def test_a_line_without_end_ends_the_child() -> None:
    ending = run(MemoryJournal(), "endless")
    assert (ending.kind, ending.cause) == ("crashed", "protocol")
    assert str(16 << 20) in ending.detail


def test_who_says_more_events_than_allowed_is_ended_and_those_allowed_are_kept() -> None:
    journal = MemoryJournal()
    ending = run(journal, "counting", events=20_000, speech=Speech(events=1000))
    assert (ending.kind, ending.cause, ending.exit_code) == ("crashed", "protocol", -signal.SIGKILL)
    assert ending.detail == "the child sent more than the 1,000 events allowed"
    assert [event["number"] for event in journal.events] == list(range(1000))


def test_who_says_more_bytes_than_allowed_is_ended_before_its_line_has_an_end() -> None:
    ending = run(MemoryJournal(), "endless", speech=Speech(bytes=4 << 20))
    assert (ending.kind, ending.cause) == ("crashed", "protocol")
    assert ending.detail == "the child sent over the 4 MiB of events allowed"


def test_an_abort_is_a_crash_with_its_signal() -> None:
    ending = run(MemoryJournal(), "aborting")
    assert (ending.cause, ending.exit_code) == ("signal", -signal.SIGABRT)
    assert "SIGABRT" in ending.detail


def test_leaving_without_a_word_is_a_crash_with_the_last_words() -> None:
    ending = run(MemoryJournal(), "leaving")
    assert (ending.kind, ending.cause, ending.exit_code) == ("crashed", "exit", 1)
    assert "last words" in ending.log


def test_a_child_that_says_why_it_leaves_has_crashed_for_that_reason() -> None:
    journal = MemoryJournal()
    ending = run(journal, "complaining")
    assert (ending.kind, ending.cause, ending.detail) == ("crashed", "exit", "no room")
    assert journal.events[-1]["text"] == "no room"
    ending = run(journal, "complaining", die=True)
    assert (ending.kind, ending.cause) == ("crashed", "signal")
    assert "SIGKILL" in ending.detail


def test_a_failure_in_the_users_words_is_no_crash() -> None:
    ending = run(MemoryJournal(), "refusing")
    assert ending.kind == "failed"
    assert ending.last is not None
    assert ending.last["next_step"] == "another"


def test_a_child_that_lingers_after_its_last_event_has_finished() -> None:
    ending = run(MemoryJournal(), "lingering", QUICK)
    assert (ending.kind, ending.exit_code) == ("finished", -signal.SIGTERM)


def test_a_lost_lease_ends_the_child_and_writes_nothing_more(crowd: Any) -> None:
    class Lost(MemoryJournal):
        refused = 0

        def write(self, events: Any) -> None:
            try:
                super().write(events)
            except LeaseLost:
                self.refused += 1
                raise

    journal = Lost(lease=1)
    ending = run(journal, "family", nonce=crowd.nonce)
    assert ending.kind == "lost"
    assert not crowd.pids()
    assert journal.refused == 1, "what is lost is asked once"


def test_a_failing_journal_ends_the_child_and_reaches_the_caller(crowd: Any) -> None:
    class Full(MemoryJournal):
        def write(self, events: Any) -> None:
            if any(event["kind"] == "log" for event in events):
                raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        run(Full(), "family", nonce=crowd.nonce)
    assert not crowd.pids()


def test_a_program_that_cannot_start_is_named() -> None:
    ending = supervise({}, MemoryJournal(), argv=["/no/such/program"])
    assert (ending.kind, ending.cause) == ("crashed", "start")
    assert "/no/such/program" in ending.detail


def test_the_child_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "DATABASE_URL",
        "REDIS_URL",
        "SECRET_KEY",
        "GITHUB_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "DJANGO_SETTINGS_MODULE",
    ):
        monkeypatch.setenv(name, "hidden")
    journal = MemoryJournal()
    run(journal, "telling", env={"TVM_NUM_THREADS": "2"})
    environment = journal.events[0]["environment"]
    assert environment["TVM_NUM_THREADS"] == "2"
    assert "hidden" not in environment.values()


def test_no_descriptor_is_left_open() -> None:
    run(MemoryJournal(), "counting", events=1)
    before = sorted(os.listdir("/proc/self/fd"))
    run(MemoryJournal(), "counting", events=1)
    run(MemoryJournal(lease=0), "counting", events=1)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_run_relayed_to_a_directory_can_be_read_back(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path) as journal:
        run(journal, "counting", events=500)
        assert [event.get("number") for event in journal.events()] == [*range(500), None]
