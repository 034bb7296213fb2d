"""The command of the full table, with one strike, and what it keeps."""

import pytest

from tests.faults import table

pytestmark = [pytest.mark.faults, pytest.mark.tvm, pytest.mark.timeout(280)]


def test_a_table_that_was_ended_goes_on_where_it_was(tmp_path, monkeypatch):
    only = "kill -9 the tuning child"
    records = table.run(tmp_path, times=1, only=only)
    told = [(record["fault"], record["lost"], record["doubled"], record["left"]) for record in records]
    assert told == [(only, 0, 0, 0)]
    with (tmp_path / "strikes.jsonl").open("a") as file:
        file.write('{"fault": "kill')  # ended while it wrote
    monkeypatch.setattr(table, "Stricken", lambda folder: pytest.fail("struck again"))
    assert table.run(tmp_path, times=1, only=only) == records
    assert [line.split()[-6] for line in table.table(records).splitlines()[1:]] == ["1"]


@pytest.mark.mutation
def test_a_measurement_that_is_lost_shows_in_the_table(monkeypatch):
    class Losing:
        def __init__(self) -> None:
            self.counts = iter([10, 8, 9])
            self.site = self

        def measured(self) -> int:
            return next(self.counts)

        def doubled(self) -> int:
            return 0

    whom = iter([[], [], [7]])  # who is struck is being started again
    fault = table.Fault("kill -9 the worker", 1, lambda on: 0, lambda on: next(whom))
    record = table.strike(fault, Losing())
    assert (record["lost"], list(whom)) == (2, [])
    assert table.table([record]).splitlines()[1].split()[-5] == "2"
