"""What an order may touch on a device: its connection's own folder, and not its own process as one that broke."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tvm

DATA = b64encode(b"text").decode()


@pytest.fixture
def buried() -> list[tuple[int, str]]:
    return []


@pytest.fixture
def device(lock_of_its_own: None, tmp_path: Path, buried: list[tuple[int, str]]) -> Any:
    from workers.device.orders import Device

    (tmp_path / "own").mkdir()
    return Device(tmp_path / "own", lambda *process: buried.append(process))


@pytest.mark.parametrize("name", ["../x", "a/b", ".key", "..", "", "x\n", "a" * 61])
def test_a_name_that_may_lead_elsewhere_is_refused(device: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "own" / "a").mkdir()
    for order in (lambda: device.put(name, DATA, True), lambda: device.get(name, 0)):
        with pytest.raises(ValueError, match="is no name of a file here"):
            order()
    assert [path.name for path in tmp_path.rglob("*")] == ["own", "a"]


def test_what_is_put_in_parts_is_one_file_and_another_beginning_replaces_it(device: Any) -> None:
    for begins in (True, False):
        device.put("run.py", DATA, begins)
    assert device.get("run.py", 0) == {"data": b64encode(b"texttext").decode()}
    device.put("run.py", DATA, True)
    assert device.get("run.py", 0) == {"data": DATA}


def test_a_file_is_had_in_parts(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.device.orders.PART", 3)
    device.put("run.py", DATA, True)
    assert [device.get("run.py", at)["data"] for at in (0, 3, 4)] == [
        b64encode(part).decode() for part in (b"tex", b"t", b"")
    ]


def test_no_order_ends_the_connection_that_it_came_by(device: Any, buried: list[tuple[int, str]]) -> None:
    assert device.bury(7, "own") == device.bury(7, "broken") == {}
    assert buried == [(7, "broken")]
