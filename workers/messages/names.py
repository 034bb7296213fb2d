"""What both sides must agree on: queues, tasks, which task waits in which queue, whose threads those are, and when work is
given up."""

QUEUE_MEASURE = "measure"
QUEUE_PREPARE = "prepare"
QUEUE_READ = "read"
THREADS = {QUEUE_MEASURE: 1, QUEUE_PREPARE: 2, QUEUE_READ: 2}
"""Jobs of a queue that its worker has at a time: one run times kernels."""
WORKERS = {QUEUE_MEASURE: (QUEUE_MEASURE,), QUEUE_PREPARE: (QUEUE_PREPARE, QUEUE_READ)}
"""Queues of each worker process: an upload is inspected however many libraries and baselines are waited for."""

TASKS_OF: dict[str, tuple[str, ...]] = {
    QUEUE_MEASURE: ("tune", "hardware"),
    QUEUE_PREPARE: ("compile", "baseline"),
    QUEUE_READ: ("inspect", "convert"),
}
"""By queue. Each task has the actor of its name."""
QUEUE_OF = {task: queue for queue, tasks in TASKS_OF.items() for task in tasks}

READING = TASKS_OF[QUEUE_READ]
"""Tasks that read an uploaded file, which may mean harm: what breaks them is the file's fault, and not tried again."""
ATTEMPTS = 3
"""In a row that brought no new measurement: after so many a run, or any other job, is given up."""
