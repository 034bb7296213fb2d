"""The papers' methods, with timings and plans for runs of minutes."""

from __future__ import annotations

from apps.tuning.methods.words import Words, numbers, parts

DYNATUNE = "DynaTune (Zhang et al., ICLR 2021)"
CHAMELEON = "Chameleon (Ahn et al., ICLR 2020)"
ADATUNE = "AdaTune (Li et al., NeurIPS 2020)"

BEST = parts("dynatune", "simulated_annealing", "greedy", "xgboost", "fixed")
"""What the recommended one is made of."""

CHAMELEON_SEARCH = (
    *numbers("search", "eight candidates for each place in a plan: measured", pool=8.0),
    *numbers("search", "product: what a plan mostly measures", first=16),
    *numbers("rhythm", "product: an upper limit, of which the sampler mostly takes half", plan=32),
)
ADATUNE_SEARCH = (
    *numbers("explorer", "AdaTune's program: twice the plan", chains=64),
    *numbers(
        "search", "AdaTune's surrogate and contextual optimizer", acquisition="expected_improvement", contextual=True
    ),
    *numbers("search", "product: share of the time for measuring a lucky best again", confirm=0.03),
    *numbers("rhythm", "AdaTune's program", plan=32),
)

AUTO = Words(
    "auto",
    "Recommended",
    "Slots of time to the operators that promise most. Take this unless you want to compare.",
    f"{DYNATUNE}, Algorithm 1",
    BEST,
    (
        *numbers("search", "product: operators with the same knobs try each other's best", twins=True),
        *numbers(
            "search", "product: own points, after which others' of earlier runs are not asked any more", earlier=128
        ),
        *numbers(
            "search", "product: random ones are drawn by the rules of the machine, half near the best", informed=True
        ),
        *numbers(
            "rhythm",
            "product: share of the seconds, at most, that is left for measuring the bests in most doubt once more; no more "
            "than 0.3 s an operator or 2 %, whichever is larger",
            last=0.05,
        ),
    ),
    more="At present DynaTune with operators that try each other's best, random configurations by the rules of the machine, "
    "and a last turn for the best of each. In runs of two minutes it ended faster than ONNX Runtime on SqueezeNet, ResNet-18, "
    "ResNet-50, VGG-19, MobileNet, a transformer encoder and AlexNet, on two cores of a processor with AVX-512, and with "
    "AVX2 alone on all of these that were run; a MobileNet quantised to 8 bits took 1.16 of its time there. How it is on yours "
    "the page of each run says. Live it was, of six methods, the first to come within 5 % of the lowest latency in eight of "
    "ten runs on SqueezeNet and GoogLeNet; in recorded parts of the spaces, by older code, it is not shown over random search "
    "and gradient, which were sooner on ResNet-18's.",
)

PAPERS = (
    Words(
        "dynatune",
        "DynaTune",
        "Predicts how much faster each operator can still get, and gives the next slot of time to the one that promises most.",
        f"{DYNATUNE}, Algorithm 1",
        BEST,
        more="A curve is fitted to what each operator has won so far, and its uncertainty sampled. Slots of one small "
        "plan and short timings, for runs of minutes.",
    ),
    Words(
        "chameleon",
        "Chameleon",
        "An agent learns which knobs to turn, and measures one configuration of each kind it finds.",
        f"{CHAMELEON}, 3.2 and 3.3",
        parts("sequential", "ppo", "adaptive", "xgboost", "fixed"),
        CHAMELEON_SEARCH,
        more="One operator after the other. Learning costs time too, and it is on the clock.",
    ),
    Words(
        "adatune",
        "AdaTune",
        "Stops timing a configuration once its times agree, and explores more where it is unsure.",
        f"{ADATUNE}, abstract and introduction; the authors' program",
        parts("sequential", "simulated_annealing", "greedy", "random_forest", "adaptive"),
        ADATUNE_SEARCH,
        more="One operator after the other. The share of random configurations follows the doubt of the cost model.",
    ),
    Words(
        "dynatune-chameleon",
        "DynaTune with Chameleon’s search",
        "DynaTune gives the slots; inside an operator an agent learns which knobs to turn, and one configuration of each kind "
        "is measured.",
        f"{DYNATUNE}, Algorithm 1, with {CHAMELEON}, 3.2 and 3.3; put together here",
        parts("dynatune", "ppo", "adaptive", "xgboost", "fixed"),
        CHAMELEON_SEARCH,
    ),
    Words(
        "dynatune-adatune",
        "DynaTune with AdaTune’s search",
        "DynaTune gives the slots; inside an operator timing stops once the times agree, and chance follows doubt.",
        f"{DYNATUNE}, Algorithm 1, with {ADATUNE}, and its authors' program; put together here",
        parts("dynatune", "simulated_annealing", "greedy", "random_forest", "adaptive"),
        ADATUNE_SEARCH,
    ),
)
