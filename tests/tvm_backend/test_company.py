"""Which programs are compiled in one module."""

from __future__ import annotations

from typing import Any

import pytest

from workers.engine.ports import Candidate
from workers.engine.space import Configuration
from workers.engine.thrift import Thrift
from workers.tvm_backend.company import COMPANY, company, shared
from workers.tvm_backend.members import Member, Task


def member() -> Member:
    return Member(1, None, lambda: 0)  # type: ignore[arg-type]  # gets no orders here


def tasks(sizes: list[float], applier: Member | None = None, **fields: Any) -> list[Task]:
    candidate = Candidate(0, Configuration(0, (0,)), "random")
    return [Task(number, candidate, size=size, applier=applier, **fields) for number, size in enumerate(sizes)]


def ids(group: list[Task]) -> list[int]:
    return [task.id for task in group]


def rated(seconds: float) -> Thrift:
    """A unit of code takes so long."""
    thrift = Thrift()
    thrift.compiled(0, 1.0, seconds)
    return thrift


def test_most_code_goes_first() -> None:
    assert ids(company(tasks([1, 5, 3, 4, 2, 2]), member(), 2, rated(0.001))) == [1, 3]


@pytest.mark.parametrize(
    ("left", "members", "most"),
    [
        (16, 2, 4),
        (9, 2, 3),
        (5, 2, 2),
        (4, 2, 1),
        (1, 2, 1),
        (16, 8, 1),
        (40, 2, COMPANY),
        (9, 1, 4),
        (4, 1, 4),
        (2, 1, 2),
    ],
)
def test_a_share_of_what_is_left_so_that_all_end_together(left: int, members: int, most: int) -> None:
    assert len(company(tasks([1.0] * left), member(), members, rated(0.001))) == most


def test_what_takes_long_has_no_company() -> None:
    sizes = [1.0, 1.0, 1.0, 40.0, *[1.0] * 12]
    assert ids(company(tasks(sizes), member(), 2, rated(0.01))) == [3]
    assert len(company(tasks([1.0] * 16), member(), 2, rated(0.12))) == 2


def test_each_takes_what_it_has_scheduled_itself() -> None:
    one, other = member(), member()
    own, foreign = tasks([1.0, 2.0], one), tasks([5.0] * 8, other)
    assert company([*foreign, *own], one, 2, rated(0.001)) == [own[1], own[0], foreign[0]]
    assert company(foreign, one, 2, rated(0.001)) == foreign[:2], "before it is idle"


def test_what_failed_in_company_is_alone() -> None:
    failed, others = tasks([3.0], alone=True), tasks([9.0, *[1.0] * 15])
    assert [task.size for task in company([*failed, *others], member(), 2, rated(0.001))] == [9.0, 1.0, 1.0, 1.0]
    assert len(company([*tasks([400.0], alone=True), *tasks([500.0, *[1.0] * 15])], member(), 2, rated(5e-4))) > 1
    assert company([*failed, *others[1:2]], member(), 2, rated(0.001)) == failed


def test_before_anything_is_known_programs_are_alone() -> None:
    assert len(company(tasks([1.0] * 16), member(), 2, Thrift())) == 1


def test_a_module_is_paid_for_by_code() -> None:
    assert shared(0.6, tasks([0.0, 150.0])) == pytest.approx([0.2, 0.4])
    assert shared(0.5, tasks([0.0])) == [0.5]
