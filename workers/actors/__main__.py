"""`python -m workers.actors NAME`: one process that works on the queues of that worker until SIGTERM.

No master above it and no fork: one process needs neither, and its death is what a launcher can see.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from dramatiq import Worker

from workers.messages.names import THREADS, WORKERS

STOP = 4_000  # ms for a running attempt to end its child and hand its Job back
LOOK = 500
"""ms at most between two looks of an idle worker into a queue; a Job waits for 0.4 of them in the mean. With 200 that takes
1 to 2 % of a core that programs are timed on, with Dramatiq's own 1000 half a percent."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="workers.actors", description="Works on the queues of one worker.")
    parser.add_argument("name", choices=sorted(WORKERS))
    name = parser.parse_args(argv).name
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    leave = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leave.set())
    work(name, leave)
    return 0


def work(name: str, leave: threading.Event) -> None:
    """Until `leave` is set."""
    # Here and not above: they set Django up, which is a waste for --help and for a wrong name.
    from workers.actors.attempt import Attempts
    from workers.actors.broker import make_broker
    from workers.actors.tasks import declare
    from workers.sandbox.protection import offered

    logging.getLogger(__name__).info("children of this worker are held back by: %s", offered())
    attempts = Attempts()
    workers = []
    for queue in WORKERS[name]:
        broker = make_broker()
        declare(broker, attempts)
        worker = Worker(broker, queues={queue}, worker_timeout=LOOK, worker_threads=THREADS[queue])
        worker.queue_prefetch = THREADS[queue]  # a message behind a run of hours would wait for it
        worker.start()
        workers.append(worker)
    leave.wait()
    attempts.leaving.set()
    with ThreadPoolExecutor() as at_once:
        list(at_once.map(lambda worker: worker.stop(timeout=STOP), workers))
    for worker in workers:
        worker.broker.close()


if __name__ == "__main__":
    sys.exit(main())
