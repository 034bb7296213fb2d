"""Uploads reach the disk as a stream, once by content, or not at all."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError

from apps.catalog import examples
from apps.catalog.examples import EXAMPLE, example_file
from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.core.errors import Refused
from apps.tuning import services
from apps.tuning.models import Job


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "networks").glob("*"))


def test_an_upload_is_kept_and_inspected(site: Any, data_dir: Path) -> None:
    network = create_network(site.ada, "C:\\nets\\resnet\x0050.onnx", iter([b"one", b"two"]))
    assert (network.name, network.size, network.state) == ("resnet50", 6, "inspecting")
    assert network.path.read_bytes() == b"onetwo"
    job = Job.objects.get(network=network, task="inspect")
    held = services.claim(job.pk)
    assert held is not None
    assert held.order()["network"] == str(network.path)
    inspection = {"inputs": [{"name": "x", "shape": [1, 3]}], "dynamic": []}
    services.write(held, [{"kind": "result", "clock": 0.1, "task": "inspect", "inspection": inspection}])
    assert services.conclude(held, "crashed") == "done"
    network.refresh_from_db()
    assert (network.state, network.shapes) == ("ready", {"x": [1, 3]})


def test_the_same_content_is_one_file_and_one_network_an_owner(site: Any, data_dir: Path) -> None:
    first, again = (create_network(site.ada, f"{name}.onnx", [b"same"]) for name in ("a", "b"))
    other = create_network(site.bob, "c.onnx", [b"same"])
    assert first == again
    assert other != first
    assert files(data_dir) == [f"{first.sha256}.onnx"]
    assert Job.objects.filter(network=first).count() == 1


def test_a_rejected_network_says_why_and_may_come_again(site: Any) -> None:
    network = create_network(site.ada, "a.onnx", [b"x"])
    held = services.claim(Job.objects.get(network=network).pk)
    assert held is not None
    services.conclude(held, "failed", last={"kind": "failed", "reason": "no graph", "next_step": "export it again"})
    network.refresh_from_db()
    assert (network.state, network.error, network.next_step) == ("rejected", "no graph", "export it again")
    assert create_network(site.ada, "a.onnx", [b"x"]).state == "inspecting"
    assert Job.objects.filter(network=network).count() == 2


def endless(taken: list[int]) -> Iterator[bytes]:
    while True:
        taken.append(1)
        yield b"x" * 1024


def test_too_many_bytes_stop_the_stream(site: Any, settings: Any, data_dir: Path) -> None:
    settings.UPLOAD_LIMIT = 10_000
    taken: list[int] = []
    with pytest.raises(Refused, match="larger"):
        create_network(site.ada, "a.onnx", endless(taken))
    assert len(taken) == 10
    assert files(data_dir) == []


def full() -> Iterator[bytes]:
    yield b"begun"
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said_and_leaves_nothing(site: Any, data_dir: Path) -> None:
    with pytest.raises(Refused, match="No space left"):
        create_network(site.ada, "a.onnx", full())
    assert files(data_dir) == []
    assert Network.objects.count() == 1


def test_what_the_database_says_of_an_upload_is_for_the_log(
    site: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise DatabaseError("relation catalog_network is odd")

    monkeypatch.setattr("apps.catalog.services._of", broken)
    with pytest.raises(Refused, match=r"^a.onnx: it cannot be kept, the database did not take it; try again$"):
        create_network(site.ada, "a.onnx", [b"x"])
    assert "relation catalog_network is odd" in caplog.text


@pytest.mark.parametrize("name", ["", "a.pt", "a.onnx.exe", "../../etc/passwd"])
def test_other_files_are_refused(site: Any, name: str) -> None:
    with pytest.raises(Refused, match="ONNX"):
        create_network(site.ada, name, [b"x"])


def test_an_empty_file_is_refused(site: Any) -> None:
    with pytest.raises(Refused, match="empty"):
        create_network(site.ada, "a.onnx", [])


def test_an_example_is_made_whole_or_refused(site: Any, data_dir: Path) -> None:
    assert sum(map(len, example_file(EXAMPLE))) > 4_000_000
    with pytest.raises(Refused, match=r"^nothing: the example could not be made; "):
        create_network(site.ada, "nothing.onnx", example_file("nothing"))
    assert files(data_dir) == []
    assert not Network.objects.filter(name="nothing").exists()


def test_examples_are_made_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = "import os, sys, time; os.mkdir(sys.argv[1]); time.sleep(0.2); os.rmdir(sys.argv[1]); print('made')"
    monkeypatch.setattr(examples, "_WRITE", alone)
    with ThreadPoolExecutor(3) as at_once:
        made = list(at_once.map(lambda _: b"".join(example_file(str(tmp_path / "making"))), range(3)))
    assert made == 3 * [b"made\n"]


def test_who_would_wait_for_long_for_other_examples_is_told_and_one_that_fails_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(examples, "WAIT", 0.0)
    monkeypatch.setattr(examples, "_WRITE", "raise SystemExit(1)")
    for _ in range(2):
        with pytest.raises(Refused, match="the example could not be made"):
            next(example_file(EXAMPLE))
    with examples._ONE, pytest.raises(Refused, match="squeezenet: other examples are being made; wait"):
        next(example_file(EXAMPLE))
