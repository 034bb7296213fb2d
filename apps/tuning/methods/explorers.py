"""Explorers and samplers in plain words: where to look for configurations, and which of them to measure."""

from __future__ import annotations

from functools import partial

from apps.tuning.methods.words import Part
from workers.messages.methods import numbers

_of = partial(numbers, "explorer")

_TABLE_8 = "Chameleon, Table 8"
_TABLES = "Chameleon, Tables 7 and 9"
_ELITE = _of("product: share of the walks that begin at the best visited configurations", elite=0.25)
_WHOLE = _of("product: a sketch that is no larger than a walk is scored whole", exhaustive=True)

EXPLORERS = (
    Part(
        "simulated_annealing",
        "Simulated annealing",
        "many chains that change one knob at a time and accept worse ones ever less often (Chameleon, Table 8).",
        (
            *_of(_TABLE_8, chains=128),
            *_of("product: chains go on where they stopped; 500 in Chameleon, Table 8", steps=100),
            *_of("AutoTVM's program, v0.19", patience=50),
            *_of("AutoTVM's program: falls from there to 0", hot=1.0),
            *_of("product: temperature is of the logarithm of speed; of speed in AutoTVM's program", differences="log"),
            *_ELITE,
            *_WHOLE,
        ),
    ),
    Part(
        "evolutionary",
        "Evolution",
        "knob settings that descend from the most promising ones by one change each (Ansor; MetaSchedule).",
        (
            *_of(
                "product: more and smaller generations under a higher pressure find better ones",
                population=256,
                generations=32,
                pressure=4.0,
            ),
            *_of("Ansor and MetaSchedule", mutation=0.85, measured=0.2),
            *_of("Ansor", crossover=0.05),
            *_of("product: random ones in each generation", epsilon=0.05),
            *_of("product: changes to any option in place of a neighbouring one", leap=0.1),
            *_WHOLE,
            *_of("product: any knob is as likely to change", moves=None),
        ),
    ),
    Part(
        "metaschedule",
        "TVM’s own search",
        "programs that descend from the most promising ones by one change each: TVM's own EvolutionarySearch, 512 over 4 "
        "generations. It brings its own cost model and chooses by itself: sampler, cost model, the numbers of the inner "
        "search and of those below all but population, generations, mutation and measured are asked on recorded landscapes "
        "only.",
        (
            *_of("TVM's EvolutionarySearch", population=512, generations=4, mutation=0.85, measured=0.2),
            *_of("TVM has none", crossover=0.0, epsilon=0.0, leap=0.0),
            *_of("TVM: in proportion to the predicted speed", pressure=1.0),
            *_of("the product's addition, off", exhaustive=False),
            *_of(
                "TVM's mutators on a processor",
                moves={"tile": 0.9, "location": 0.05, "category": 0.03, "parallel": 0.02},
            ),
        ),
    ),
    Part(
        "ppo",
        "Learning agent",
        "an agent that learns which knobs to turn, and keeps what it learned (Chameleon, 3.2).",
        (
            *_of(_TABLES, episodes=128),
            *_of("product: learns after so many; the paper does not say", together=32),
            *_of("product: learned fastest; 500 in Chameleon's tables", steps=64),
            *_of("product: learned fastest; 0.001 in Chameleon's tables", rate=3e-3),
            *_of(_TABLES, discount=0.9, gae=0.99, epochs=3),
            *_of("product: not in the paper", minibatch=128),
            *_of(_TABLES, clip=0.3, value=1.0),
            *_of("product: learned fastest; 0.1 in Chameleon's tables", entropy=0.01),
            *_of(
                "product: the mean over knobs, 1 at most; in nats, over all knobs, in Chameleon's program",
                spread="knob",
            ),
            *_of("Chameleon's program: a ratio for each knob", ratio="knob"),
            *_of("Chameleon: episodes do not end early; 0.75 in its program", still=None),
            *_of("product: the logarithm of the estimate", reward="log"),
            *_of("product: the paper found its own by search", hidden=32),
            *_ELITE,
            *_WHOLE,
        ),
    ),
    Part("random", "By chance", "every configuration is as likely as another."),
)

_to = partial(numbers, "sampler")

SAMPLERS = (
    Part("greedy", "Best first", "the most promising ones."),
    Part(
        "diverse",
        "Best first, but not alike",
        "the most promising ones, with a reward for options that the plan does not have yet (AutoTVM's diversity filter).",
        _to("AutoTVM's program", weight=1.0),
    ),
    Part(
        "adaptive",
        "One of each kind",
        "one of each cluster of candidates, of as few clusters as tell them apart (Chameleon, 3.3).",
        (
            *_to("Chameleon's program: 8, 16, 24, ... clusters", mode="stepped"),
            *_to("product: measured best", columns="features", snap="best"),
            *_to("Chameleon, Table 7", threshold=2.5),
            *_to("product: starts of K-means", restarts=1),
        ),
    ),
    Part(
        "adaptive-program",
        "One of each kind, as programmed",
        "a configuration made up for each cluster of the two knobs with most options, the other knobs drawn from the "
        "candidates (Chameleon’s program).",
        (
            *_to("Chameleon, Table 7", threshold=2.5),
            *_to("Chameleon's program: the last of a sketch's part of a plan are by chance, 5 % of 64", chance=3),
        ),
    ),
)
