"""The methods in plain words, in the order of the form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    name: str
    title: str
    text: str


CHOICES = (
    Words("auto", "Recommended", "What measures best so far. Take this unless you want to compare."),
    Words(
        "dynatune",
        "DynaTune",
        "Predicts how much faster each operator can still get, and gives the next slot of time to the one that promises most.",
    ),
    Words(
        "round_robin",
        "Operators in turn",
        "The same search inside each operator, but every operator gets the same time.",
    ),
    Words(
        "sequential",
        "One operator after the other",
        "The same search, but each operator is finished before the next begins.",
    ),
    Words("random", "Random search", "Random configurations, operators in turn: what every method has to beat."),
    Words(
        "autotvm",
        "AutoTVM",
        "One operator after the other, with long timings. For comparison; takes hours.",
    ),
    Words(
        "dynatune-paper",
        "DynaTune as published",
        "With the slots and timings of the publication. For comparison; takes hours.",
    ),
)
TITLES = {words.name: words.title for words in CHOICES}
EVERYDAY = 3
"""So many of CHOICES are shown at once; the others are a click away."""
