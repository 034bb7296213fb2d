"""Malformed and hostile files, uploaded to a real site one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.networks.test_hostile_files import BOMBS, chain
from tests.operations.test_serve import asked, cookie_name, form, signed_in
from tests.processes import eventually

pytestmark = pytest.mark.faults

COUNT = int(os.environ.get("HOSTILE_UPLOADS", "24"))
"""The table of faults says 10,000."""
OF_ONE = 24
"""Uploads of an account, which may send 30 in an hour."""
SECRET = b"what no upload may read"
LONGEST = 30.0
"""Seconds of a verdict from when it was begun: the table says 10, a child has 20, and others use this machine."""


def rubbish(random: np.random.Generator, content: bytes, secret: Path) -> bytes:
    return b"\x08\x07" + random.bytes(2000)


def cut(random: np.random.Generator, content: bytes, secret: Path) -> bytes:
    return content[: random.integers(1, len(content))]


def mutated(random: np.random.Generator, content: bytes, secret: Path) -> bytes:
    """In what is no weight, which may be anything."""
    changed = bytearray(content)
    for place in random.integers(-250, 400, 3):
        changed[place] = random.integers(256)
    return bytes(changed)


def bomb(random: np.random.Generator, content: bytes, secret: Path) -> bytes:
    model = BOMBS[random.choice(list(BOMBS))]()
    model.producer_name = str(random.integers(1 << 60))  # what an account sent before is not read again
    return bytes(model.SerializeToString())


def reaching(random: np.random.Generator, content: bytes, secret: Path) -> bytes:
    """Its weights are another file."""
    weight = TensorProto(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    places = (str(secret), f"../../../../../..{secret}", "/etc/passwd", "db.sqlite3")
    weight.external_data.add(key="location", value=str(random.choice(places)))
    model = chain(helper.make_node("Add", ["x", "w"], ["y"]), weights=[weight])
    model.producer_name = str(random.integers(1 << 60))
    return bytes(model.SerializeToString())


KINDS: tuple[Callable[[np.random.Generator, bytes, Path], bytes], ...] = (rubbish, cut, mutated, bomb, reaching)


def sent(site: Any, session: str, content: bytes) -> str:
    """The key of the network that it is until it has its verdict."""
    token = "t" * 32
    field = f'--edge\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n{token}\r\n'
    body = b"".join([field.encode(), *form([content])])
    cookie = f"{session}; {cookie_name(site, 'CSRF')}={token}"
    kind = "Content-Type: multipart/form-data; boundary=edge"
    headers = [cookie, kind, f"Content-Length: {len(body)}", "X-Requested-With: XMLHttpRequest"]
    answer, _ = asked(site, "/networks/", headers, [body])
    assert answer.startswith("HTTP/1.1 200 "), answer
    key = answer.partition('"location": "/networks/')[2].partition("/")[0]
    assert key, answer
    return key


@pytest.mark.timeout(300 + 20 * COUNT)
def test_whatever_is_uploaded_has_its_verdict_and_nobody_dies_of_it(site: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    content, random = (tmp_path / "tiny.onnx").read_bytes(), np.random.default_rng(11)
    site.start_web()
    site.server()
    worker = site.worker("prepare")
    site.reconciler(every=1)
    session, kinds = "", dict[str, str]()
    for number in range(COUNT):
        if number % OF_ONE == 0:
            session = signed_in(site, f"sender {number}")
        kind = KINDS[number % len(KINDS)]
        kinds[sent(site, session, kind(random, content, secret))] = kind.__name__
    asking = "result = Job.objects.filter(task='inspect').exclude(state__in=['done', 'failed']).count()"
    eventually(lambda: site.ask(asking) == 0, 60 + 10 * COUNT, "the verdicts")
    found = site.ask("""
jobs = Job.objects.filter(task="inspect").select_related("network")
result = [[job.network_id, job.network.state, job.network.error, (job.ended - job.started).total_seconds()] for job in jobs]
""")
    assert {key for key, *_ in found} == kinds.keys()
    for key, state, error, seconds in found:
        assert state == "rejected" or kinds[key] == "mutated", (kinds[key], state)
        assert (state, bool(error)) in (("rejected", True), ("ready", False)), (kinds[key], state, error)
        assert kinds[key] != "reaching" or "another file" in error
        assert SECRET.decode() not in error
        assert seconds < LONGEST
    assert worker.poll() is None
    assert site.web.poll() is None
    for name in ("web", "prepare"):
        assert "Traceback" not in site.log(name), site.logs()
