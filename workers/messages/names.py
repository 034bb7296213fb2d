"""Names that both sides must agree on: queues and actors."""

QUEUE_MEASURE = "measure"
QUEUE_PREPARE = "prepare"

ACTOR_TUNE = "tune"
ACTOR_INSPECT = "inspect"
ACTOR_PEAK = "measure_peak"
ACTOR_COMPILE = "compile_artifact"
ACTOR_BASELINE = "measure_baselines"
