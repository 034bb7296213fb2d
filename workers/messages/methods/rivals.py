"""What DynaTune's scheduler is compared with (5.1 to 5.3, Appendices A and C): its inner search, slots given otherwise."""

from __future__ import annotations

from workers.messages.methods.dynatune import DYNATUNE, PAPER
from workers.messages.methods.preset import Preset, parts


def _rival(name: str, title: str, text: str, where: str, scheduler: str = "") -> Preset:
    return Preset(name, title, text, f"{PAPER}, {where}", {**DYNATUNE.parts, "scheduler": scheduler or name},
                  DYNATUNE.numbers, more="The search inside an operator is DynaTune's.")  # fmt: skip


RIVALS = (
    _rival("round_robin", "Operators in turn", "Every operator gets the same time.", "5.2"),
    _rival("sequential", "One operator after the other", "Each operator is finished before the next begins.", "5.1"),
    _rival("random_slots", "Operators by chance", "Each slot goes to an operator drawn by chance.", "5.2", "random"),
    _rival("linear", "Operators by work", "An operator gets time in proportion to its work.", "5.2"),
    _rival("dynamic_round_robin", "In turn, without finished ones", "Operators in turn, but for those that 200 "
           "configurations have not improved.", "5.3"),
    _rival("dynamic_random", "By chance, without finished ones", "Operators by chance, but for those that 200 "
           "configurations have not improved.", "5.3"),
    _rival("epsilon_greedy", "Largest gain, some by chance", "The largest gain expected; one slot of twenty goes "
           "anywhere.", "Appendix A"),
    _rival("softmax", "By chance, larger gains more often", "Drawn by chance, the likelier the larger the gain expected.",
           "Appendix A"),
    _rival("gradient", "Steepest descent", "The operator whose time falls fastest, as in Ansor (OSDI 2020).", "Appendix C"),
    Preset("random", "Random search", "Random configurations, operators in turn: what every method has to beat.",
           "the baseline of all", parts("round_robin", "random", "greedy", "none", "fixed")),
)  # fmt: skip
