import sys
from functools import partial
from pathlib import Path
from typing import Any

from workers.supervision import DirectoryJournal, Ending, History, restart_until_progress_stops, supervise

TOY = [sys.executable, str(Path(__file__).with_name("toy_child.py"))]


def test_a_run_that_is_killed_again_and_again_goes_on_while_it_progresses(tmp_path: Path) -> None:
    def order(history: History) -> dict[str, Any]:
        return {"vice": "counting", "begin": history.trials, "events": 10, "die": history.trials < 50}

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

        ending = restart_until_progress_stops(journal, lambda history: {"trials": history.trials}, attempt)
    assert [order["trials"] for order in attempts] == [0, 0, 0, 1, 1, 1]
    assert "3 attempts" in ending.detail
    assert "it fell over" in ending.detail
