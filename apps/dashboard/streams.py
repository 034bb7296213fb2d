"""Long answers, a piece at a time, under both kinds of server."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Model, QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from apps.tuning.models import Event, Measurement, TuningRun

PIECE = 1 << 18
ROWS = 1000


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


def _pages(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """By number, so that no cursor stays open while a slow client reads."""
    last = -1
    while page := list(rows.filter(seq__gt=last).order_by("seq")[:ROWS]):
        yield page
        last = page[-1].seq


def measurement_fields() -> list[str]:
    """All columns but the keys."""
    return [field.name for field in Measurement._meta.fields if field.name not in ("id", "run")]


def _plain(row: Model, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def log_lines(run: TuningRun) -> Iterator[bytes]:
    """The tuning log as JSON lines: first what was measured, then every event as the page was told."""
    names = measurement_fields()
    for page in _pages(Measurement.objects.filter(run=run)):
        yield _lines({"kind": "measurement", **_plain(row, names)} for row in page)
    for page in _pages(Event.objects.filter(run=run).exclude(kind="batch")):
        yield _lines(row.payload for row in page)


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()


def measurement_table(run: TuningRun) -> Iterator[bytes]:
    """Measurements as CSV; a cell that a spreadsheet could take for a formula is quoted as text."""
    names = measurement_fields()
    yield (",".join(names) + "\n").encode()
    for page in _pages(Measurement.objects.filter(run=run)):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([_cell(value) for value in _plain(row, names).values()] for row in page)
        yield text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
