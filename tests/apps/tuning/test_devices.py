"""Devices elsewhere: who may add them, what a key is worth, and what is not asked of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.catalog.models import Target
from apps.core.errors import Refused
from apps.tuning import services
from apps.tuning.models import Artifact, Job, TuningRun
from workers.messages.device import PORT, Address

KEY = "0123456789abcdef0123456789abcdef"
FOUND = {"name": "Cortex-A72", "cores": 4, "target": {"kind": "llvm", "mtriple": "aarch64-linux-gnu"}}

PEAK = {"flops": 2e10, "bandwidth": 3e9}
HEARD = {"kind": "result", "clock": 1.0, "task": "hardware", "hardware": FOUND, "peak": PEAK, "versions": {}}
REFUSED = {"kind": "failed", "clock": 1.0, "error": "DeviceRefused", "reason": "another key", "next_step": "look"}


@pytest.fixture
def staff(site: Any) -> Any:
    site.ada.is_staff = True
    site.ada.save()
    return site.ada


@pytest.fixture
def board(site: Any, staff: Any) -> Target:
    """A device that was measured."""
    target = services.add_device(Address("10.0.0.7", PORT, KEY), staff)
    held = services.claim(Job.objects.get(task="hardware", target=target).pk)
    assert held is not None
    services.write(held, [HEARD])
    services.conclude(held, "finished")
    target.refresh_from_db()
    return target


def test_a_name_as_long_as_a_host_s_may_be_is_kept(staff: Any) -> None:
    host = ".".join(["board"] * 40)
    assert services.add_device(Address(host, PORT, KEY), staff).name == f"{host}:{PORT}"[:200]


def test_a_device_is_called_with_its_key(site: Any, staff: Any, tmp_path: Path) -> None:
    target = services.add_device(services.device_at("board.local:9200", f" {KEY}\n"), staff)
    held = services.claim(Job.objects.get(task="hardware", target=target).pk)
    assert held is not None
    assert held.order()["device"] == {"host": "board.local", "port": 9200, "key": KEY}


def test_what_was_measured_is_its_own(board: Target) -> None:
    assert (board.state, board.name, board.threads) == ("ready", f"Cortex-A72 at 10.0.0.7:{PORT}", 4)
    assert board.tvm == FOUND["target"]
    assert "fingerprint" not in board.hardware, "this machine's would have it measured again"
    assert board.device == Address("10.0.0.7", PORT, KEY)


def test_a_run_for_it_has_its_address_and_no_baselines_of_this_machine(site: Any, board: Target) -> None:
    site.target = board
    run = site.run()
    assert not Job.objects.filter(task="baseline").exists()
    held = services.claim(run.job_id)
    assert held is not None
    order = held.order()
    assert (order["device"], order["machine"]) == (board.device.to_json(), "Cortex-A72")
    assert KEY not in order["spec"], "which is kept and told"


def test_a_run_for_this_machine_has_no_device(site: Any) -> None:
    held = services.claim(site.run().job_id)
    assert held is not None
    assert held.order()["device"] is None


def test_its_library_has_no_ratio(site: Any, board: Target) -> None:
    site.target = board
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    taken = services.claim(services.request_artifact(run, site.ada).pk)
    assert taken is not None
    assert taken.order()["device"] == board.device.to_json()
    result = {"kind": "result", "clock": 1.0, "task": "compile", "passed": False, "verdict": {}, "archive": None}
    services.write(taken, [{**result, "latency": {"median": 0.4}, "onnxruntime": None, "ratio": None}])
    assert (Artifact.objects.get().ratio, Artifact.objects.get().onnxruntime) == (None, {})


def test_one_account_of_several_adds_and_removes_none(site: Any, board: Target) -> None:
    with pytest.raises(Refused, match="only who runs this site can add devices"):
        services.add_device(Address("10.0.0.8", PORT, KEY), site.bob)
    with pytest.raises(Refused, match="only who runs this site can remove devices"):
        services.remove_device(board, site.bob)
    assert Target.objects.filter(kind="device").count() == 1


@pytest.mark.parametrize(
    ("address", "key", "why"),
    [
        ("", KEY, "names no machine"),
        ("a b", KEY, "names no machine"),
        ("http://board", KEY, "no port"),
        ("board:0", KEY, "no port"),
        ("board:70000", KEY, "no port"),
        ("board\0", KEY, "names no machine"),
        ("b" * 256, KEY, "names no machine"),
        ("board; rm", KEY, "names no machine"),
        ("board", "k" * 201, "16 to 200 letters"),
        ("board", "short", "16 to 200 letters"),
    ],
)
def test_what_is_no_address_and_no_key_is_said(site: Any, staff: Any, address: str, key: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        services.device_at(address, key)
    assert not Target.objects.filter(kind="device").exists()


def test_added_again_it_is_called_with_the_new_key(board: Target, staff: Any) -> None:
    again = services.add_device(Address("10.0.0.7", PORT, KEY[::-1]), staff)
    assert again.pk == board.pk
    job = Job.objects.get(task="hardware", target=board, state="queued")
    held = services.claim(job.pk)
    assert held is not None
    assert held.order()["device"]["key"] == KEY[::-1]
    board.refresh_from_db()
    assert board.device == Address("10.0.0.7", PORT, KEY), "runs go on with the key that is good"
    services.write(held, [HEARD])
    services.conclude(held, "finished")
    board.refresh_from_db()
    assert (board.state, board.device, board.new_key) == ("ready", Address("10.0.0.7", PORT, KEY[::-1]), "")


def test_of_a_device_that_never_took_a_key_the_last_one_given_is_kept(site: Any, staff: Any) -> None:
    """Its first was mistyped, and it was off when the right one came."""
    for key in (KEY[::-1], KEY):
        board = services.add_device(Address("10.0.0.9", PORT, key), staff)
        held = services.claim(Job.objects.get(task="hardware", target=board, state="queued").pk)
        assert held is not None
        services.write(held, [REFUSED])
        services.conclude(held, "failed")
    board.refresh_from_db()
    assert (board.state, board.tried) == ("failed", Address("10.0.0.9", PORT, KEY))


def test_a_device_that_does_not_answer_is_not_offered_though_its_key_is_given_again(board: Target, staff: Any) -> None:
    services.add_device(Address("10.0.0.7", PORT, KEY), staff)
    held = services.claim(Job.objects.get(task="hardware", target=board, state="queued").pk)
    assert held is not None
    services.write(held, [REFUSED])
    services.conclude(held, "failed")
    board.refresh_from_db()
    assert board.state == "failed"


def test_a_key_that_the_device_does_not_take_is_forgotten(board: Target, staff: Any) -> None:
    services.add_device(Address("10.0.0.7", PORT, KEY[::-1]), staff)
    held = services.claim(Job.objects.get(task="hardware", target=board, state="queued").pk)
    assert held is not None
    services.write(
        held, [{"kind": "failed", "clock": 1.0, "error": "DeviceRefused", "reason": "another key", "next_step": "look"}]
    )
    services.conclude(held, "failed")
    board.refresh_from_db()
    assert (board.state, board.device, board.new_key) == ("ready", Address("10.0.0.7", PORT, KEY), "")
    services.remeasure(board, staff)
    held = services.claim(Job.objects.get(task="hardware", target=board, state="queued").pk)
    assert held is not None
    assert held.order()["device"]["key"] == KEY


def test_while_it_is_tested_its_key_stays(board: Target, staff: Any) -> None:
    job = services.remeasure(board, staff)
    assert services.claim(job.pk) is not None
    with pytest.raises(Refused, match="it is being tested"):
        services.add_device(Address("10.0.0.7", PORT, KEY[::-1]), staff)
    assert Target.objects.get(pk=board.pk).key == KEY


def test_one_that_does_not_answer_says_so_and_can_be_tested_again(site: Any, staff: Any) -> None:
    target = services.add_device(Address("10.0.0.9", PORT, KEY), staff)
    held = services.claim(Job.objects.get(task="hardware", target=target).pk)
    assert held is not None
    failed = {"kind": "failed", "error": "DeviceRefused", "reason": "it has another key", "next_step": "take that"}
    services.conclude(held, "failed", last=failed)
    target.refresh_from_db()
    assert (target.state, target.error, target.next_step) == ("failed", "it has another key", "take that")
    services.remeasure(target, staff)
    assert Job.objects.filter(task="hardware", target=target, state="queued").count() == 1


def test_it_is_removed_unless_runs_were_tuned_for_it(site: Any, board: Target, staff: Any) -> None:
    local = site.target
    site.target = board
    site.run()
    with pytest.raises(Refused, match=r"runs were tuned for it \(1\)"):
        services.remove_device(board, staff)
    with pytest.raises(Refused, match="no device that was added"):
        services.remove_device(local, staff)
    other = services.add_device(Address("10.0.0.8", PORT, KEY), staff)
    assert services.claim(Job.objects.get(target=other).pk) is not None
    with pytest.raises(Refused, match="being measured"):
        services.remove_device(other, staff)
    Job.objects.filter(target=other).update(state="failed")
    services.remove_device(other, staff)
    assert not Target.objects.filter(pk=other.pk).exists()


def test_who_removes_one_is_told_who_has_to_delete_its_runs(site: Any, board: Target, staff: Any) -> None:
    site.target = board
    said = []

    def ask() -> None:
        with pytest.raises(Refused) as refused:
            services.remove_device(board, staff)
        said.append(refused.value.next_step)

    run = site.run()
    TuningRun.objects.filter(pk=run.pk).update(owner=site.bob)
    ask()
    site.run()
    ask()
    TuningRun.objects.filter(pk=run.pk).update(owner=staff)
    ask()
    TuningRun.objects.update(owner=None)
    ask()
    assert said == [
        "the accounts whose they are have to delete their networks first",
        "delete the networks of yours first; the accounts whose the others are have to delete theirs",
        "delete their networks first",
        "they are being deleted; try again in a minute",
    ]


def test_while_it_waits_to_be_called_it_can_be_corrected_and_taken_back(site: Any, staff: Any) -> None:
    """Its own account's run of hours may be before it."""
    target = services.add_device(Address("10.0.0.8", PORT, KEY), staff)
    services.add_device(Address("10.0.0.8", PORT, KEY[::-1]), staff)
    assert Target.objects.get(pk=target.pk).key == KEY[::-1]
    assert Job.objects.filter(task="hardware", target=target).count() == 1
    services.remove_device(target, staff)
    assert not Target.objects.filter(pk=target.pk).exists()
    assert not Job.objects.filter(task="hardware", target_id=target.pk).exists()


def test_one_that_answered_and_does_no_more_is_not_offered(site: Any, board: Target, staff: Any) -> None:
    services.remeasure(board, staff)
    held = services.claim(Job.objects.get(target=board, state="queued").pk)
    assert held is not None
    last = {"kind": "failed", "error": "DeviceGone", "reason": "no answer", "next_step": "look"}
    services.conclude(held, "failed", last=last)
    board.refresh_from_db()
    assert (board.state, board.error) == ("failed", "no answer")
    assert board.peak_flops == 2e10, "what was measured stays"
