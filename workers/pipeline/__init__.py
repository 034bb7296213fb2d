"""One run: warm-up, slots, stop rules, checkpoints, accounting. Knows neither TVM nor Django."""

from workers.pipeline.loop import TuningLoop

__all__ = ["TuningLoop"]
