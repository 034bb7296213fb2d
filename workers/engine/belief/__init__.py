"""The Bayesian learning-curve belief (DynaTune 4.3): what one more slot would bring an operator, with uncertainty."""

from workers.engine.belief.belief import Belief, Diagnostics, Forecast
from workers.engine.belief.curves import curve_named
from workers.engine.belief.posterior import FAST, PAPER, Sampling
from workers.engine.belief.records import Records

__all__ = [
    "FAST",
    "PAPER",
    "Belief",
    "Diagnostics",
    "Forecast",
    "Records",
    "Sampling",
    "curve_named",
]
