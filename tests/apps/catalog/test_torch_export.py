"""torch.export files: refused unless the site takes them; then converted first, and what came out is inspected."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.core.errors import Refused
from apps.tuning import services
from apps.tuning.models import Job
from tests.kernel import needs
from workers.actors.attempt import Attempts
from workers.sandbox import landlock
from workers.supervision import terms


@pytest.fixture
def allowed(settings: Any) -> None:
    settings.ALLOW_TORCH_EXPORT = True


def claimed(network: Network, task: str) -> services.Claim:
    """After those whose turn is before it."""
    job = Job.objects.get(network=network, task=task, state="queued")
    while (held := services.claim(job.pk)) is not None and held.job_id != job.pk:
        pass
    assert held is not None
    return held


def converted(held: services.Claim, content: bytes, **changes: Any) -> None:
    """What the child says that converted the file to this content."""
    held.order()
    made = held.work_dir / "network.onnx"
    made.write_bytes(content)
    services.write(held, [{"kind": "result", "clock": 1.0, "task": "convert", "onnx": str(made), **changes}])


def test_a_torch_export_file_is_refused_with_the_risk_and_the_setting(site: Any, data_dir: Path, settings: Any) -> None:
    assert settings.ALLOW_TORCH_EXPORT is False
    before = Network.objects.count()
    with pytest.raises(Refused, match=r"run code(.|\n)*ALLOW_TORCH_EXPORT=1"):
        create_network(site.ada, "resnet.PT2", [b"anything"])
    assert not list(data_dir.glob("networks/*.pt2"))
    assert Network.objects.count() == before


@pytest.mark.usefixtures("allowed")
def test_an_upload_is_converted_and_what_came_out_is_inspected(site: Any, data_dir: Path) -> None:
    network = create_network(site.ada, "resnet.pt2", [b"program"])
    assert (network.name, network.file_name, network.unconverted) == ("resnet", "resnet.pt2", True)
    assert network.source_path.read_bytes() == b"program"
    assert not Job.objects.filter(network=network, task="inspect").exists()
    held = claimed(network, "convert")
    order = held.order()
    assert (order["source"], order["allowed"]) == (str(network.source_path), True)
    converted(held, b"onnx content")
    assert services.conclude(held, "finished") == "done"
    network.refresh_from_db()
    assert (network.state, network.size, network.unconverted) == ("inspecting", 12, False)
    assert network.path.read_bytes() == b"onnx content"
    assert claimed(network, "inspect").order()["network"] == str(network.path)
    assert create_network(site.ada, "again.pt2", [b"program"]) == network
    assert network.file_name == "resnet.pt2"


@pytest.mark.usefixtures("allowed")
def test_a_program_that_was_also_uploaded_as_something_else_is_converted_again(site: Any) -> None:
    network = create_network(site.ada, "a.pt2", [b"program"])
    converted(claimed(network, "convert"), b"onnx content")
    misnamed = create_network(site.ada, "a.onnx", [b"program"])
    Network.objects.filter(pk__in=[network.pk, misnamed.pk]).update(state="rejected")
    again = create_network(site.ada, "a.pt2", [b"program"])
    assert (again, again.state, again.unconverted) == (network, "inspecting", True)
    assert not Network.objects.filter(pk=misnamed.pk).exists()


@pytest.mark.usefixtures("allowed")
def test_a_second_answer_changes_nothing(site: Any) -> None:
    network = create_network(site.ada, "a.pt2", [b"program"])
    held = claimed(network, "convert")
    converted(held, b"first")
    converted(held, b"second")
    network.refresh_from_db()
    assert network.path.read_bytes() == b"first"
    assert Job.objects.filter(network=network, task="inspect").count() == 1


@pytest.mark.usefixtures("allowed")
def test_of_a_child_that_answers_without_end_one_file_is_copied(site: Any, data_dir: Path, settings: Any) -> None:
    network = create_network(site.ada, "a.pt2", [b"program"])
    held = claimed(network, "convert")
    held.order()
    answers = []
    for number in range(3):
        made = held.work_dir / f"{number}.onnx"
        made.write_bytes(bytes([number]))
        answers.append({"kind": "result", "clock": 1.0, "task": "convert", "onnx": str(made)})
    services.write(held, [{**answers[2], "task": "inspect"}, *answers])
    services.write(held, answers[1:])
    network.refresh_from_db()
    assert list(data_dir.glob("networks/*.onnx")) == [network.path]
    assert network.path.read_bytes() == b"\0"


@pytest.mark.usefixtures("allowed")
def test_a_conversion_larger_than_an_upload_or_after_its_lease_is_not_copied(
    site: Any, data_dir: Path, settings: Any
) -> None:
    held = claimed(create_network(site.ada, "a.pt2", [b"program"]), "convert")
    settings.UPLOAD_LIMIT = 3
    with pytest.raises(Refused, match="more than 3 bytes"):
        converted(held, b"four")
    # A full account: it may be as large as the program whose place it takes.
    settings.UPLOAD_LIMIT, settings.QUOTA = 100, 10
    converted(held, b"eight by")
    error = Job.objects.get(pk=held.job_id).error
    assert error == "there is no room for it: it has more than the 7 B that are left to you"
    assert not list(data_dir.glob("networks/*.onnx"))
    Job.objects.filter(pk=held.job_id).update(fence=held.fence + 1)
    with pytest.raises(services.LeaseLost):
        converted(held, b"x")
    assert not list(data_dir.glob("networks/*.onnx"))


@pytest.mark.usefixtures("allowed")
def test_what_a_child_says_at_its_end_is_kept_without_what_no_database_takes(site: Any) -> None:
    network = create_network(site.ada, "a.pt2", [b"program"])
    last = {"kind": "failed", "reason": "no\0t a \ud800zip", "next_step": "say\0 \udfffit"}
    assert services.conclude(claimed(network, "convert"), "failed", log="l\0og\ud800", last=last) == "failed"
    network.refresh_from_db()
    assert (network.error, network.next_step) == ("not a ?zip", "say ?it")
    assert Job.objects.get(network=network, task="convert").log == "log?"


@pytest.mark.usefixtures("allowed")
def test_a_child_that_was_taken_over_cannot_pass_an_inspection_or_another_file(site: Any, tmp_path: Path) -> None:
    network = create_network(site.ada, "a.pt2", [b"program"])
    held = claimed(network, "convert")
    held.order()
    forged = {"inputs": [{"name": "x", "shape": [1]}], "dynamic": []}
    (held.work_dir / "network.onnx").write_bytes(b"x")
    inspected = {"kind": "result", "clock": 1.0, "task": "inspect", "inspection": forged}
    services.write(held, [{**inspected, "onnx": str(held.work_dir / "network.onnx")}])
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    (held.work_dir / "link.onnx").symlink_to(secret)
    os.mkfifo(held.work_dir / "pipe.onnx")
    places = (secret, held.work_dir / "link.onnx", held.work_dir / "pipe.onnx", held.work_dir / ".." / "secret", "")
    for onnx in map(str, places):
        with pytest.raises(Refused):
            services.write(held, [{"kind": "result", "clock": 1.0, "task": "convert", "onnx": onnx}])
    services.write(held, [inspected])
    network.refresh_from_db()
    assert (network.state, network.unconverted) == ("inspecting", True)


@pytest.mark.usefixtures("allowed")
def test_a_rejected_file_may_come_again_under_its_right_name(site: Any) -> None:
    network = create_network(site.ada, "a.pt2", [b"an ONNX file"])
    held = claimed(network, "convert")
    services.conclude(held, "failed", last={"kind": "failed", "reason": "not a zip", "next_step": "name it .onnx"})
    network.refresh_from_db()
    assert (network.state, network.error, network.next_step) == ("rejected", "not a zip", "name it .onnx")
    assert create_network(site.ada, "a.pt2", [b"an ONNX file"]).state == "inspecting"
    services.conclude(claimed(network, "convert"), "failed", last={"kind": "failed", "reason": "not a zip"})
    assert create_network(site.ada, "a.onnx", [b"an ONNX file"]) == network
    network.refresh_from_db()
    assert (network.source, network.file_name, network.path.read_bytes()) == ("", "a.onnx", b"an ONNX file")
    assert claimed(network, "inspect").order()["network"] == str(network.path)


@pytest.mark.usefixtures("allowed")
def test_a_file_that_was_rejected_after_its_conversion_is_converted_anew(site: Any) -> None:
    network = create_network(site.ada, "a.pt2", [b"program"])
    held = claimed(network, "convert")
    converted(held, b"onnx content")
    services.conclude(held, "finished")
    services.conclude(claimed(network, "inspect"), "failed", last={"kind": "failed", "reason": "odd"})
    network.refresh_from_db()
    assert (network.state, network.unconverted) == ("rejected", False)
    network.path.unlink()  # swept away
    network.source_path.unlink()
    assert create_network(site.ada, "b.pt2", [b"program"]) == network
    network.refresh_from_db()
    assert (network.state, network.unconverted, network.size, network.file_name) == ("inspecting", True, 7, "b.pt2")
    held = claimed(network, "convert")
    assert Path(held.order()["source"]).read_bytes() == b"program"
    converted(held, b"onnx content")
    services.conclude(held, "finished")
    network.refresh_from_db()
    assert Path(claimed(network, "inspect").order()["network"]).read_bytes() == b"onnx content"


@pytest.mark.usefixtures("allowed")
def test_two_files_that_become_one_network_are_named(site: Any) -> None:
    first = create_network(site.ada, "first.onnx", [b"content"])
    second = create_network(site.ada, "second.pt2", [b"program"])
    converted(claimed(second, "convert"), b"content")
    second.refresh_from_db()
    assert (second.state, second.error) == ("rejected", "it is the same network as first")
    other = create_network(site.bob, "third.pt2", [b"program"])
    converted(claimed(other, "convert"), b"content")
    other.refresh_from_db()
    assert (other.state, other.sha256) == ("inspecting", first.sha256)


def _never(*arguments: Any) -> None:
    raise Refused("event", "it cannot be kept", "report it")


@needs("scopes")
@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("broken", "word"),
    [
        (lambda patch: patch.setattr(terms, "CONVERSION", 0.0), "not done after"),  # over once the child has its order
        (lambda patch: patch.setattr(services, "write", _never), "it cannot be kept"),
        (lambda patch: patch.setattr(landlock, "supported", lambda: 5), "Landlock version 6"),
    ],
    ids=["time", "refused", "kernel"],
)
def test_a_conversion_that_cannot_end_well_is_tried_once(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], None], word: str
) -> None:
    (tmp_path / "locks").mkdir(mode=0o700)
    monkeypatch.setenv("TUNINGSITE_MEASURE_LOCK", str(tmp_path / "locks" / "measure.lock"))
    network = create_network(site.ada, "a.pt2", [b"program"])
    job = Job.objects.get(network=network, task="convert")
    broken(monkeypatch)
    Attempts().at(str(job.pk))
    job.refresh_from_db()
    network.refresh_from_db()
    assert (job.state, job.attempt, network.state) == ("failed", 1, "rejected"), job.error
    assert word in network.error
    assert "export the network as .onnx" in network.next_step


def test_a_file_taken_before_the_setting_was_turned_off_is_not_loaded(site: Any, settings: Any) -> None:
    settings.ALLOW_TORCH_EXPORT = True
    network = create_network(site.ada, "a.pt2", [b"program"])
    settings.ALLOW_TORCH_EXPORT = False
    assert claimed(network, "convert").order()["allowed"] is False
