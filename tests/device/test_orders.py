"""What an order may touch on a device: its connection's own folder, and not its own process as one that broke."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import zoo
from tests.processes import alive
from tests.tvm_backend.local import spec_of

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


def test_a_script_is_told_with_its_status_and_ends_when_its_time_is_over(device: Any, tmp_path: Path) -> None:
    told = b"import os, sys; print(sys.argv[1:], os.getcwd(), flush=True); sys.exit('no')"
    device.put("run.py", b64encode(told).decode(), True)
    assert device.script(["--check", "a b"], 30.0) == {
        "output": f"['--check', 'a b'] {tmp_path / 'own'}\nno\n",
        "status": 1,
    }
    slow = b"import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    device.put("run.py", b64encode(slow).decode(), True)
    with pytest.raises(TimeoutError, match=r"^it did not end within 6 s$"):
        device.script([], 6.0)
    assert not alive(int((tmp_path / "own" / "pid").read_text()))


def test_any_build_of_onnx_runtime_is_one_to_compare_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime-gpu and others import as onnxruntime, and no distribution has that name."""
    from workers.device import orders

    monkeypatch.setattr(orders, "find_spec", lambda name: name)
    assert (orders.greeting(tmp_path)["onnxruntime"], orders.greeting(tmp_path, gpu=True)["onnxruntime"]) == (
        True,
        False,
    )
    monkeypatch.setattr(orders, "find_spec", lambda name: name if name == "onnx" else None)
    assert orders.greeting(tmp_path)["onnxruntime"] is False


def test_no_order_ends_the_connection_that_it_came_by(device: Any, buried: list[tuple[int, str]]) -> None:
    assert device.bury(7, "own") == device.bury(7, "broken") == {}
    assert buried == [(7, "broken")]


def test_silence_ends_only_who_holds_the_device(device: Any) -> None:
    from workers.device.orders import SILENCE

    assert device.silence == 0.0
    device.hold()
    assert device.silence == SILENCE
    device.release()
    assert device.silence == 0.0


def test_a_device_times_nothing_that_was_made_for_another(device: Any) -> None:
    found = device.hardware(peak=False)["hardware"]
    order = {"target": found["target"], "threads": found["cores"], "evaluator": {}, "footprint": 0}
    for other in ({"threads": found["cores"] + 1}, {"target": {**found["target"], "mcpu": "another"}}):
        with pytest.raises(RuntimeError, match="another machine than the one that was measured; start another run"):
            device.begin(**order | other)


CARD: dict[str, Any] = {"name": "A card", "cores": 132, "target": {"kind": "cuda", "arch": "sm_90"}}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"target": {"kind": "cuda", "arch": "sm_80"}}, "its target is another"),
        ({"cores": 114}, "it has 114 cores or multiprocessors, not 132"),
        ({"name": "Another card"}, "it is Another card, not A card"),
    ],
)
def test_another_card_is_told_by_its_target_its_multiprocessors_and_its_name(other: dict[str, Any], said: str) -> None:
    from workers.tvm_backend.remote.line import DeviceRefused
    from workers.tvm_backend.remote.sameness import check_same

    for name in ("A card", ""):
        check_same(CARD, CARD["target"], 132, name)
    with pytest.raises(DeviceRefused, match=said) as refused:
        check_same(CARD | other, CARD["target"], 132, "A card")
    assert "start another run" in refused.value.next_step


def test_no_library_is_made_for_a_device_that_is_another_by_now(
    tmp_path: Path, zoo_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.child import artifact
    from workers.child.clock import RunClock
    from workers.child.pulse import Pulse
    from workers.messages.channel import ControlReader
    from workers.tvm_backend.remote.line import DeviceRefused

    spec = replace(spec_of(zoo.tiny(zoo_cache)), target=CARD["target"], threads=132)
    order = {"spec": spec.to_json(), "work_dir": str(tmp_path), "device": "board", "machine": "A card"}
    monkeypatch.setattr(artifact, "asked", lambda peak: {"hardware": CARD | {"name": "Another card"}})
    pulse = Pulse(list[dict[str, Any]]().append, RunClock(0.0))
    try:
        with pytest.raises(DeviceRefused, match="it is Another card, not A card"):
            artifact.compile_artifact(order, ControlReader(), pulse)
    finally:
        pulse.close()
