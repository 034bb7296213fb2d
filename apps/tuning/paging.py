"""Long lists of rows, read a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import F, QuerySet

from apps.tuning.models import Operator, TuningRun

PAGE = 2000
FEW = 4


def few(run: TuningRun, operator: Operator) -> bool:
    """Whether an operator has a small part of a run's measurements, and few enough to be put in order for every page."""
    return FEW * operator.trials < run.trials and operator.trials**2 < PAGE // 2 * run.trials


def by_number(rows: QuerySet[Any], *columns: str, size: int = PAGE, apart: bool = False) -> Iterator[tuple[Any, ...]]:
    """(seq, *columns) of measurements or events in the order of their numbers. Of an operator's, where these are `few`, `apart`
    has SQLite take the index of operators: by that of the numbers it would look through the whole run.

    Between two pages no cursor is open: on SQLite it would keep whoever writes waiting for whoever reads.
    """
    number, last = "number" if apart else "seq", -1
    rows = rows.alias(number=F("seq") + 0).order_by(number).values_list("seq", *columns)  # which is no column
    while page := list(rows.filter(**{f"{number}__gt": last})[:size]):
        yield from page
        last = page[-1][0]
