"""What both sides must agree on: queues, actors, which actor works on which queue, whose threads those are, and when work is
given up."""

QUEUE_MEASURE = "measure"
QUEUE_PREPARE = "prepare"
QUEUE_READ = "read"
THREADS = {QUEUE_MEASURE: 1, QUEUE_PREPARE: 2, QUEUE_READ: 2}
"""Jobs of a queue that its worker has at a time: one run times kernels."""
WORKERS = {QUEUE_MEASURE: (QUEUE_MEASURE,), QUEUE_PREPARE: (QUEUE_PREPARE, QUEUE_READ)}
"""Queues of each worker process: an upload is inspected however many libraries and baselines are waited for."""

ACTOR_TUNE = "tune"
ACTOR_INSPECT = "inspect"
ACTOR_CONVERT = "convert_network"
ACTOR_PEAK = "measure_peak"
ACTOR_COMPILE = "compile_artifact"
ACTOR_BASELINE = "measure_baselines"

QUEUE_OF = {
    ACTOR_TUNE: QUEUE_MEASURE,
    ACTOR_PEAK: QUEUE_MEASURE,
    ACTOR_INSPECT: QUEUE_READ,
    ACTOR_CONVERT: QUEUE_READ,
    ACTOR_COMPILE: QUEUE_PREPARE,
    ACTOR_BASELINE: QUEUE_PREPARE,
}

READING = ("inspect", "convert")
"""Tasks that read an uploaded file, which may mean harm: what breaks them is the file's fault, and not tried again."""
ATTEMPTS = 3
"""In a row that brought no new measurement: after so many a run, or any other job, is given up."""
