"""The parts that methods are made of, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from apps.dashboard.methods.words import Part

ROLES = {
    "scheduler": "Scheduler",
    "explorer": "Explorer",
    "sampler": "Sampler",
    "cost_model": "Cost model",
    "evaluator": "Evaluator",
    "search": "Inner search",
    "rhythm": "Rhythm",
}
PARTS: dict[str, Sequence[Part]] = {
    "scheduler": (
        Part("dynatune", "believes a curve for each operator and gives the slot to the largest gain it can expect, in "
             "doubt included (DynaTune, Algorithm 1); its bonus follows the size of the gains."),
        Part("dynatune-paper", "the same with the bonus in milliseconds, as printed: C = 2, or 0.2 under 1 ms; an operator is "
             "finished after 200 configurations without improvement (DynaTune, 4.2 and 5)."),
        Part("epsilon_greedy", "the largest expected gain, and 5 % of the slots by chance (DynaTune, Appendix A)."),
        Part("softmax", "by chance, the likelier the larger the expected gain (DynaTune, Appendix A)."),
        Part("gradient", "the steepest descent of the network's latency: alpha 0.2, beta 2, window 3 (Ansor; DynaTune, "
             "Appendix C)."),
        Part("sequential", "one operator after the other, in equal parts of the budget (DynaTune, 5.1)."),
        Part("round_robin", "in turn (DynaTune, 5.2)."),
        Part("random", "by chance (DynaTune, 5.2)."),
        Part("linear", "in proportion to the operators' work (DynaTune, 5.2)."),
        Part("dynamic_round_robin", "in turn, without operators that are finished: 200 configurations brought nothing "
             "(DynaTune, 5.3)."),
        Part("dynamic_random", "by chance, without operators that are finished (DynaTune, 5.3)."),
    ),
    "explorer": (
        Part("simulated_annealing", "many chains that change one knob at a time and accept worse ones ever less often "
             "(Chameleon, Table 8)."),
        Part("metaschedule", "programs that descend from the most promising ones by one change each: TVM's own "
             "EvolutionarySearch, 512 over 4 generations."),
        Part("ppo", "an agent that learns which knobs to turn, and keeps what it learned (Chameleon, 3.2)."),
        Part("random", "configurations by chance."),
    ),
    "sampler": (
        Part("greedy", "the most promising ones."),
        Part("adaptive", "one of each cluster of candidates, of as few clusters as tell them apart (Chameleon, 3.3)."),
    ),
    "cost_model": (
        Part("xgboost", "boosted trees: depth 3, gamma 1e-4, minimum child weight 1, eta 0.3, lambda 1 (AutoTVM's program)."),
        Part("random_forest", "10 trees on 10 columns, which say how sure they are (AdaTune's program)."),
        Part("none", "no opinion."),
    ),
    "evaluator": (
        Part("fixed", "runs of a number or time set before; hopeless programs are cut."),
        Part("adaptive", "runs in batches, until the batches agree (AdaTune)."),
    ),
}  # fmt: skip
"""By role; of the registered ones those that a method uses."""
