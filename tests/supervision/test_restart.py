import sys
from functools import partial
from pathlib import Path
from typing import Any

from workers.supervision import DirectoryJournal, Ending, History, restart_until_progress_stops, supervise

TOY = [sys.executable, str(Path(__file__).with_name("toy_child.py"))]


def test_a_run_that_is_killed_again_and_again_goes_on_while_it_progresses(tmp_path: Path) -> None:
    def order(history: History) -> dict[str, Any]:
        return {
            "vice": "counting",
            "begin": len(history.measurements),
            "events": 10,
            "die": len(history.measurements) < 50,
        }

    with DirectoryJournal(tmp_path) as journal:
        ending = restart_until_progress_stops(journal, order, partial(supervise, journal=journal, argv=TOY))
        numbers = [measurement["number"] for measurement in journal.history().measurements]
    assert ending.kind == "finished"
    assert numbers == list(range(60))


def test_attempts_without_progress_are_counted_in_a_row(tmp_path: Path) -> None:
    gains = iter([0, 0, 1, 0, 0, 0, 1])
    attempts = []

    with DirectoryJournal(tmp_path) as journal:

        def attempt(order: Any) -> Ending:
            attempts.append(order)
            journal.write([{"kind": "batch", "clock": 0.0, "measurements": [{}] * next(gains)}])
            return Ending("crashed", "exit", "it fell over")

        ending = restart_until_progress_stops(journal, lambda history: {"trials": len(history.measurements)}, attempt)
    assert [order["trials"] for order in attempts] == [0, 0, 0, 1, 1, 1]
    assert "3 attempts" in ending.detail
    assert "it fell over" in ending.detail


def test_a_child_that_finds_no_room_is_tried_again_and_at_last_the_reason_is_told(tmp_path: Path) -> None:
    with DirectoryJournal(tmp_path) as journal:
        order = {"vice": "complaining"}
        ending = restart_until_progress_stops(journal, lambda _: order, partial(supervise, journal=journal, argv=TOY))
        assert [event["text"] for event in journal.events()] == ["no room"] * 3
    assert ending.kind == "crashed"
    assert ending.detail == "3 attempts in a row saved no measurement; the last one: no room"
