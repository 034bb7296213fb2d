"""The recommended method."""

from __future__ import annotations

from workers.messages.methods.dynatune import DYNATUNE
from workers.messages.methods.preset import Preset, numbers

BEST = DYNATUNE
"""What `auto` is. The one place to change when something else measures best."""

AUTO = Preset(
    "auto",
    "Recommended",
    "Slots of time to the operators that promise most. Take this unless you want to compare.",
    BEST.paper,
    BEST.parts,
    (
        *BEST.numbers,
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
    "and a last turn for the best of each. In runs of two minutes it ended faster than ONNX Runtime on SqueezeNet, "
    "ResNet-18, ResNet-50, VGG-19, MobileNet, a transformer encoder and AlexNet, on two cores of a processor with "
    "AVX-512, and with AVX2 alone on all of these that were run; a MobileNet quantised to 8 bits took 1.16 of its time "
    "there, and on a busy Intel server a ResNet-50 1.09 and a MobileNet 1.03. How it is on yours the page of each run "
    "says. Live it was, of six methods, the first to come within 5 % of the lowest latency in eight of ten runs on "
    "SqueezeNet and GoogLeNet. In recorded parts of SqueezeNet's and ResNet-18's spaces its median is the lowest of ten "
    "methods, but by ten pairs of runs it is not shown over random search, DynaTune and Ansor's gradient scheduler.",
)
