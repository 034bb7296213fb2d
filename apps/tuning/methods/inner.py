"""What of a method is no part and has numbers, in plain words: the inner search of an operator, and the run's rhythm."""

from __future__ import annotations

from functools import partial

from apps.tuning.methods.words import Part
from workers.messages.methods import numbers

_of = partial(numbers, "search")

SEARCH = Part(
    "search",
    "Inner search",
    "what the parts do together for one operator.",
    (
        *_of(
            "product: measured points of an operator before its cost model is asked; a plan of 64 in AutoTVM", first=8
        ),
        *_of("AutoTVM's program: share of a plan that is random", epsilon=0.05),
        *_of("AutoTVM's program: candidates for each place in a plan", pool=1.0),
        *_of(
            "product: new points, of those it has, or their number, after which a model is fitted again",
            refit=0.1,
            refit_points=8,
        ),
        *_of("product: duplicates and invalid ones in a row that close a sketch", patience=64),
        *_of("product: how sharply sketches share by success, and how much for trying", power=3.0, curiosity=0.15),
        *_of("AutoTVM's program: the expected speed", acquisition="mean"),
        *_of("AdaTune's contextual optimizer, off", contextual=False),
        *_of("product: share of the time for measuring a lucky best again, off", confirm=0.0),
        *_of("product: points under which an operator learns from those alike, off", transfer=0),
        *_of("product: the same, from what earlier runs found of others with its knobs, off", earlier=0),
        *_of("product: operators with the same knobs try each other's best, off", twins=False),
        *_of("product: random ones by the rules of the machine, off", informed=False),
        *_of("product: table look-ups", features="knobs"),
        *_of("product: a plan is what a slot measures", ahead=None),
        *_of("product: all that the rules of the machine have an operator begin with; one in AutoTVM", starts=None),
    ),
)
_to = partial(numbers, "rhythm")

RHYTHM = Part(
    "rhythm",
    "Rhythm",
    "how a run spends its trials.",
    (
        *_to("product: a small slot", plan=16),
        *_to("product: trials an operator before the scheduler begins, at most", warm_up=4),
        *_to("product: a slot is one plan; 100 s in DynaTune, 5", slot_seconds=None),
        *_to("product: slots after which an operator is finished, no such end; 16 in Chameleon, Table 7", slots=None),
        *_to(
            "product: share of the seconds, at most, that is left for measuring the bests in most doubt once more; no more "
            "than 0.3 s an operator or 2 %, whichever is larger; off",
            last=0.0,
        ),
    ),
)
ACQUISITIONS = (
    Part("mean", "Expected speed", "as the cost model has it (AutoTVM)."),
    Part("expected_improvement", "Expected improvement", "by how much it may be faster than the best (AdaTune)."),
    Part("upper_bound", "Upper bound", "what is expected and one spread more (Auer 2002)."),
)
"""What makes a candidate worth measuring: values of `search.acquisition`; all but the first want a model that is unsure."""
FEATURES = (
    Part("knobs", "Knobs", "thousands are looked up in a table (Chameleon, 2.2)."),
    Part(
        "lowered",
        "Loops",
        "as TVM sees them in the lowered program (MetaSchedule): milliseconds for each configuration.",
    ),
)
"""What a cost model sees of a configuration: values of `search.features`."""
