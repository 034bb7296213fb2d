"""Long answers, a piece at a time, under both kinds of server."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse

from apps.dashboard import humans
from apps.tuning.models import Measurement, Operator, TuningRun
from apps.tuning.orders import tuning_log
from apps.tuning.paging import by_number
from workers.messages.tuning_log import encode_row

PIECE = 1 << 18
ROWS = 1000

_T = TypeVar("_T")


def attachment(request: HttpRequest, pieces: Iterator[bytes], name: str, kind: str) -> StreamingHttpResponse:
    """A download. An asynchronous server would gather a plain iterator whole in memory."""
    content: Any = _in_a_thread(pieces) if hasattr(request, "scope") else pieces
    response = StreamingHttpResponse(content, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


async def _in_a_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    def step() -> bytes | None:
        return next(pieces, None)

    while (piece := await sync_to_async(step)()) is not None:
        yield piece


def file_pieces(path: Path) -> Iterator[bytes]:
    """Raises OSError when it is not there, before the first piece is asked for."""
    file = path.open("rb")

    def read() -> Iterator[bytes]:
        with file:
            while piece := file.read(PIECE):
                yield piece

    return read()


def measurement_fields() -> list[str]:
    """All columns but the keys, the number first."""
    return ["seq", *(field.name for field in Measurement._meta.fields if field.name not in ("id", "run", "seq"))]


def log_lines(run: TuningRun) -> Iterator[bytes]:
    """The tuning log as an archive has it (messages.tuning_log)."""
    for page in _batched(map(encode_row, tuning_log(run))):
        yield "".join(f"{line}\n" for line in page).encode()


def _batched(rows: Iterator[_T]) -> Iterator[list[_T]]:
    """As many as make a piece of an answer."""
    while page := list(islice(rows, ROWS)):
        yield page


def measurement_table(run: TuningRun, operator: Operator | None = None) -> Iterator[bytes]:
    """Measurements as CSV, of one operator or of all."""
    names, rows = measurement_fields(), run.measurements.all()
    if operator is not None:
        rows = rows.filter(operator=operator.index)
    yield as_csv([names]).encode()
    for page in _batched(by_number(rows, *names[1:], size=ROWS)):
        yield as_csv(page).encode()


def slot_table(run: TuningRun) -> Iterator[bytes]:
    """Slots as CSV: of a long run the page draws a choice."""
    names = {index: humans.short(name) for index, name in run.operators.values_list("index", "name")}
    columns = ("operator", "began", "ended", "before", "after", "trials", "rule")
    heads = ("slot", "operator", "name", "began_s", "ended_s", "before_s", "after_s", "tried", "why")
    yield as_csv([heads]).encode()
    for page in _batched(by_number(run.slots.all(), *columns, size=ROWS, number="number")):
        yield as_csv([slot, index, names.get(index), *rest] for slot, index, *rest in page).encode()


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    """A cell that a spreadsheet could take for a formula is quoted as text. Lines end as RFC 4180 has it: what a cell has of an
    end is quoted then, also a lone carriage return, behind which a spreadsheet could begin another."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return f"'{value}" if isinstance(value, str) and value.lstrip()[:1] in ("=", "+", "-", "@") else value
