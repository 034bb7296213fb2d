"""One run: warm-up, slots, stop rules, checkpoints, accounting. Knows neither TVM nor Django."""

from workers.pipeline.loop import TuningLoop
from workers.pipeline.record import measurement_of, outcome_of

__all__ = ["TuningLoop", "measurement_of", "outcome_of"]
