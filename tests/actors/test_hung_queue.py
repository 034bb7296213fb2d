"""A queue's server that takes what is said to it and never answers."""

import signal

import pytest

from apps.operations import embedded
from apps.operations.queue_address import socket_path, url_of
from tests.processes import eventually


@pytest.fixture
def hung(site):
    server = site.server()
    site.ask("dispatch.broker().client.ping()")
    server.send_signal(signal.SIGSTOP)
    return server


def test_a_queue_that_hangs_holds_nobody_up_and_gets_what_it_missed_when_it_answers(site, hung):
    took = site.ask("""
import time
from datetime import timedelta
from apps.core import clock, queue_server
queue_server.RESPITE = 60.0  # nobody asks it twice, however long all of this takes
began = time.monotonic()
run = services.create_run(owner, network, target, "random", Budget(trials=1))
held = services.claim(run.job_id)
services.write(held, [{"kind": "phase", "clock": 0.1, "name": "tuning", "text": "tuning"}])
services.heartbeat(held, now=clock.now() + timedelta(seconds=6))
services.conclude(held, "interrupted")
services.reconcile()
services.request(run, owner, "pause")
services.request(run, owner, "resume")
result = time.monotonic() - began
""")
    assert took < 10, "it waited more than once"
    unsent = "result = Outbox.objects.filter(sent_at=None).count()"
    assert site.ask(unsent) == 2
    hung.send_signal(signal.SIGCONT)
    site.ask("queue_server.HUNG._until = 0.0")  # that time is over
    eventually(lambda: site.ask(f"services.reconcile(); {unsent}") == 0, 60, "the messages")


def test_a_queue_that_hangs_is_said_at_the_start(site, hung):
    address = url_of(socket_path(site.data), (site.data / "queue_password").read_text())
    with pytest.raises(embedded.NoServer, match="does not answer"):
        embedded.wait_until_up(address, 0.1)
