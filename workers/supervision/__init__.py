"""One child for one order: start it, relay its events into a journal, control it, and say how it ended."""

from workers.supervision.directory import DirectoryJournal, History
from workers.supervision.ports import Deadlines, Ending, Journal
from workers.supervision.restart import restart_until_progress_stops
from workers.supervision.supervisor import supervise

__all__ = [
    "Deadlines",
    "DirectoryJournal",
    "Ending",
    "History",
    "Journal",
    "restart_until_progress_stops",
    "supervise",
]
