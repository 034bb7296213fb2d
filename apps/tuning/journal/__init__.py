"""Events of a child, kept: one fenced transaction a batch, every measurement and event once.

The fenced UPDATE comes first, then the run's counter is locked, then everything is read that is added to: two
writers of one run (a tuning and an artifact's compilation) wait for each other. What is read and written is by the
batch, not by the event, and by index: a run of 100,000 measurements is written as fast as a new one.
"""

from apps.tuning.journal.batch import write
from apps.tuning.journal.rows import ordered, own_terms, slot_row

__all__ = ["ordered", "own_terms", "slot_row", "write"]
