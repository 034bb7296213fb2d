"""`python -m workers.actors QUEUE`: one process that works on one queue until SIGTERM.

No master above it and no fork: one process a queue needs neither, and its death is what a launcher can see.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
import threading

from dramatiq import Worker

from workers.messages.names import THREADS

STOP = 4_000  # ms for a running attempt to end its child and hand its Job back


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="workers.actors", description="Works on one queue.")
    parser.add_argument("queue", choices=sorted(THREADS))
    queue = parser.parse_args(argv).queue
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    leave = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leave.set())
    work(queue, leave)
    return 0


def work(queue: str, leave: threading.Event) -> None:
    """Until `leave` is set."""
    # Here and not above: they set Django up, which is a waste for --help and for a wrong queue.
    from workers.actors.attempt import Attempts
    from workers.actors.broker import make_broker
    from workers.actors.tasks import declare
    from workers.sandbox.protection import offered

    logging.getLogger(__name__).info("children of this worker are held back by: %s", offered())
    broker = make_broker()
    attempts = Attempts(f"{socket.gethostname()}:{os.getpid()}:{queue}")
    declare(broker, attempts)
    worker = Worker(broker, queues={queue}, worker_threads=THREADS[queue])
    worker.queue_prefetch = THREADS[queue]  # a message behind a run of hours would wait for it
    worker.start()
    leave.wait()
    attempts.leaving.set()
    worker.stop(timeout=STOP)
    broker.close()


if __name__ == "__main__":
    sys.exit(main())
