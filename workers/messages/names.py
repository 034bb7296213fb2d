"""Names that both sides must agree on: queues, actors, and which actor works on which queue, by how many threads."""

QUEUE_MEASURE = "measure"
QUEUE_PREPARE = "prepare"
THREADS = {QUEUE_MEASURE: 1, QUEUE_PREPARE: 2}
"""Jobs that a queue's worker has at a time: one run times kernels; an upload is inspected while an artifact compiles."""

ACTOR_TUNE = "tune"
ACTOR_INSPECT = "inspect"
ACTOR_CONVERT = "convert_network"
ACTOR_PEAK = "measure_peak"
ACTOR_COMPILE = "compile_artifact"
ACTOR_BASELINE = "measure_baselines"

QUEUE_OF = {
    ACTOR_TUNE: QUEUE_MEASURE,
    ACTOR_PEAK: QUEUE_MEASURE,
    ACTOR_INSPECT: QUEUE_PREPARE,
    ACTOR_CONVERT: QUEUE_PREPARE,
    ACTOR_COMPILE: QUEUE_PREPARE,
    ACTOR_BASELINE: QUEUE_PREPARE,
}

READING = ("inspect", "convert")
"""Tasks that read an uploaded file, which may mean harm: what breaks them is the file's fault, and not tried again."""
