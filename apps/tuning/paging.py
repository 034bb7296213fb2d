"""Long lists of rows, read a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

PAGE = 2000


def by_number(rows: QuerySet[Any], *columns: str, size: int = PAGE, number: str = "seq") -> Iterator[tuple[Any, ...]]:
    """(number, *columns) of measurements, events or slots in the order of their numbers, in the column of that name.

    Between two pages no cursor is open: on SQLite it would keep whoever writes waiting for whoever reads.
    """
    rows, last = rows.order_by(number).values_list(number, *columns), -1
    while page := list(rows.filter(**{f"{number}__gt": last})[:size]):
        yield from page
        last = page[-1][0]
