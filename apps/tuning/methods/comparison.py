"""What the papers' methods are compared with: schedulers, the papers' own numbers, and ablations."""

from __future__ import annotations

from dataclasses import replace

from apps.tuning.methods.numbers import (
    AGENT,
    AGENT_OF_THE_PROGRAM,
    ANNEALING,
    ANNEALING_OF_AUTOTVM,
    BATCHES,
    CLUSTERS,
    EAGER,
    FIRST,
    FOREST,
    ITERATIONS,
    RANKING,
    REGRESSION,
    RUNS_500,
    SAMPLED,
    batches,
    first_plan,
)  # fmt: skip
from apps.tuning.methods.papers import ADATUNE, BEST, CHAMELEON, DYNATUNE
from apps.tuning.methods.words import Words, numbers, parts

METASCHEDULE = "MetaSchedule (Shao et al., NeurIPS 2022), as in TVM 0.27"
_AUTOTVM = parts("sequential", "simulated_annealing", "greedy", "xgboost", "fixed")
_AUTOTVM_NUMBERS = (*ANNEALING_OF_AUTOTVM, *REGRESSION, *RUNS_500, *FIRST, *EAGER)
_ADATUNE = parts("sequential", "simulated_annealing", "greedy", "random_forest", "adaptive")
_HALVED = (
    *numbers("explorer", "AdaTune's program: twice the plan", chains=64),
    *(number for number in ANNEALING if number.name != "chains"),
    *numbers("explorer", "AdaTune's program: temperature is of FLOP/s, of which it forgives none", differences="flops"),
)
_IMPROVEMENT = (
    *first_plan("AdaTune's program", 16),
    *numbers("search", "AdaTune's surrogate", acquisition="expected_improvement"),
)
_CONTEXTUAL = numbers("search", "AdaTune's contextual optimizer", contextual=True)
_UNTIL_VALID = "DynaTune, 5: until each operator has a valid one; a limit of one plan"
_SLOTS = (
    *numbers("rhythm", _UNTIL_VALID, warm_up=64),
    *numbers("rhythm", "DynaTune, 5: slots of the order of 100 s", slot_seconds=100.0),
)
_PLANS_OF_32 = (
    *numbers("rhythm", "AdaTune's program", plan=32),
    *numbers("rhythm", "one configuration makes the latency finite", warm_up=1),
)


def _rival(name: str, title: str, text: str, where: str, scheduler: str = "") -> Words:
    return Words(name, title, text, f"{DYNATUNE}, {where}", {**BEST, "scheduler": scheduler or name},
                 more="The search inside an operator is DynaTune's.")  # fmt: skip


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
    Words("random", "Random search", "Random configurations, operators in turn: what every method has to beat.",
          "the baseline of all", parts("round_robin", "random", "greedy", "none", "fixed")),
)  # fmt: skip

_SKETCHES = (
    "As in all methods here sketches share a plan by their success, and one is closed after 64 duplicates or invalid "
    "configurations in a row; AutoTVM, on which the papers’ programs stand, has one space and never closes it."
)
_PUBLISHED = (
    Words(
        "autotvm",
        "AutoTVM",
        "One operator after the other, with long timings. Takes hours.",
        "AutoTVM (Chen et al., NeurIPS 2018), as in Chameleon, Table 8",
        _AUTOTVM,
        _AUTOTVM_NUMBERS,
        more="The baseline of all three papers. 5 % of a plan are random.",
    ),
    Words(
        "metaschedule",
        "TVM’s own tuner",
        "Evolves programs and follows the steepest descent, with TVM’s numbers and long timings.",
        METASCHEDULE,
        parts("gradient", "metaschedule", "greedy", "xgboost", "fixed"),
        (
            *numbers(
                "scheduler",
                "TVM's GradientBased compares no operators and leaves nothing to chance",
                beta=1e9,
                epsilon=0.0,
            ),
            *numbers(
                "cost_model",
                "TVM's XGBModel and XGBConfig",
                objective="reg",
                target="speed",
                depth=10,
                gamma=1e-3,
                child=0.0,
                eta=0.2,
                subsample=1.0,
                weighted=True,
            ),
            *numbers("cost_model", "TVM stops by itself", rounds=100),
            *numbers(
                "evaluator",
                "TVM's EvaluatorConfig: 100 ms in runs of 0.2 ms and more",
                runs=3,
                most=500,
                seconds=0.1,
                reject=0.0,
                statistic="mean",
            ),
            *numbers(
                "search",
                "TVM's model guesses until 100 programs were measured; here the first plan is random",
                first=32,
            ),
            *numbers(
                "search", "TVM's one model learns from all operators; here each from those alike", transfer=100_000
            ),
            *numbers("rhythm", "TVM's tune_tasks", plan=64),
            *numbers("rhythm", "product", warm_up=4),
        ),
        more="TVM’s EvolutionarySearch proposes, and its trees learn from the loops of each program. Differs from TVM’s "
        "tune_relax: operators begin with configurations chosen by rules, programs are built and timed as in every method "
        "here, and a resumed run goes on with other luck. Comparisons on recorded landscapes, which have no programs to "
        "mutate, evolve knobs with the numbers below instead: those of the cost model and the inner search, whatever they are "
        "set to, hold on landscapes only.",
    ),
    Words(
        "dynatune-paper",
        "DynaTune as published",
        "With the slots and timings of the publication. Takes hours.",
        f"{DYNATUNE}, 4 and 5",
        {**BEST, "scheduler": "dynatune-paper"},
        (
            *ANNEALING,
            *RANKING,
            *RUNS_500,
            *FIRST,
            *numbers("rhythm", "as AutoTVM (Chameleon, Table 8)", plan=64),
            *_SLOTS,
        ),
        more="Its trees rank, and their walk forgives by the logarithm of speed; AutoTVM’s, and the AutoTVM with ranking trees "
        "that AdaTune is compared with, forgive by speed.",
    ),
    Words(
        "dynatune-program",
        "DynaTune as programmed",
        "Slots to the operators that will be fastest themselves, as the authors’ program gives them. Takes hours.",
        f"{DYNATUNE}; the authors' program",
        {**BEST, "scheduler": "dynatune-paper", "evaluator": "adaptive"},
        (
            *numbers("scheduler", "DynaTune's program: the predicted speed itself, in GFLOP/s", score="speed"),
            *numbers("scheduler", "DynaTune's program: its constraint is off by default", prior=False),
            *numbers("scheduler", "DynaTune's program: a curve is fitted whole", pieces=False),
            *numbers("scheduler", "DynaTune's program: C = 2 of any network", c_fast=2.0),
            *numbers("scheduler", "DynaTune's script: stops early; 200 in DynaTune, 5.3", patience=50),
            *ANNEALING,
            *RANKING,
            *batches("DynaTune's script"),
            *numbers("evaluator", "DynaTune's script: the fastest and the slowest batch count too", extremes=True),
            *first_plan("AutoTVM's program", 16),
            *numbers("search", "DynaTune's program: a plan, of which the rest waits for the next slot", ahead=32),
            *numbers("rhythm", "as many as there are cores in DynaTune's program", plan=8),
            *numbers("rhythm", _UNTIL_VALID, warm_up=32),
            *numbers("rhythm", "DynaTune's script: slots of 20 s", slot_seconds=20.0),
        ),
        more="Where program and publication differ, this is the program: it scores by the predicted speed, not by what "
        "that takes off the network, its curves are whole and may end under the best, and an operator is finished sooner. "
        "Its bonus counts slots as the publication does: after the warm-up, t one more than there were, operators without "
        "one first; the program’s takes the logarithm of all slices, those of the warm-up among them and among an operator’s "
        "own, and puts nobody first. The program’s script fits a curve by least squares alone; here it is sampled.",
    ),
    Words(
        "chameleon-paper",
        "Chameleon as published",
        "With the walks and timings of the publication. Takes hours.",
        f"{CHAMELEON}, 3.2, 3.3, Tables 7 to 9",
        parts("sequential", "ppo", "adaptive", "xgboost", "fixed"),
        (*AGENT, *CLUSTERS, *REGRESSION, *RUNS_500, *SAMPLED, *EAGER, *ITERATIONS),
        more="Both parts together: AE + AS of the ablations.",
    ),
    Words(
        "chameleon-program",
        "Chameleon as programmed",
        "With walks that end early and clusters of two knobs, as in the authors’ program. Takes hours.",
        f"{CHAMELEON}; the authors' program",
        parts("sequential", "ppo", "adaptive-program", "xgboost", "fixed"),
        (
            *AGENT_OF_THE_PROGRAM,
            *REGRESSION,
            *RUNS_500,
            *FIRST,
            *numbers("search", "Chameleon's program: its sampler leaves some of a plan to chance", epsilon=0.0),
            *EAGER,
            *ITERATIONS,
        ),
        more="Where program and publication differ, this is the program: 16 clusters or more in place of 9, configurations "
        "made up of what candidates have, and an agent that is kept curious. The program also learns after every episode, "
        "and never has agent and sampling work together; this does not, and does.",
    ),
    Words(
        "adatune-paper",
        "AdaTune as published",
        "With the timings and plans of its program. Takes hours.",
        f"{ADATUNE}; the authors' program",
        _ADATUNE,
        (*_HALVED, *FOREST, *BATCHES, *_IMPROVEMENT, *_CONTEXTUAL, *_PLANS_OF_32),
    ),
    Words(
        "dynatune-chameleon-paper",
        "DynaTune with Chameleon as published",
        "DynaTune’s slots over Chameleon’s search, with the numbers of both publications. Takes hours.",
        f"{DYNATUNE}, 4 and 5, with {CHAMELEON}, 3.2, 3.3, Tables 7 to 9; put together here",
        parts("dynatune-paper", "ppo", "adaptive", "xgboost", "fixed"),
        (
            *AGENT,
            *CLUSTERS,
            *REGRESSION,
            *RUNS_500,
            *SAMPLED,
            *numbers("rhythm", "Chameleon, Table 8", plan=64),
            *_SLOTS,
        ),
    ),
    Words(
        "dynatune-adatune-paper",
        "DynaTune with AdaTune as published",
        "DynaTune’s slots over AdaTune’s search, with the numbers of the publication and the program. Takes hours.",
        f"{DYNATUNE}, 4 and 5, with {ADATUNE}, and its authors' program; put together here",
        {**_ADATUNE, "scheduler": "dynatune-paper"},
        (
            *_HALVED,
            *FOREST,
            *BATCHES,
            *_IMPROVEMENT,
            *_CONTEXTUAL,
            *numbers("rhythm", "AdaTune's program", plan=32),
            *numbers("rhythm", _UNTIL_VALID, warm_up=32),
            *_SLOTS[1:],
        ),
    ),
)

PUBLISHED = tuple(
    replace(words, more=f"{words.more} {_SKETCHES}".strip()) if words.name.endswith(("-paper", "-program")) else words
    for words in _PUBLISHED
)

ABLATIONS = (
    Words("chameleon-sa", "Chameleon: neither part", "Annealing and greedy sampling: the same as AutoTVM. Takes hours.",
          f"{CHAMELEON}, 4.1: SA", _AUTOTVM, _AUTOTVM_NUMBERS),
    Words("chameleon-ae", "Chameleon: the agent alone", "AutoTVM with the agent in place of annealing. Takes hours.",
          f"{CHAMELEON}, 4.1: AE", {**_AUTOTVM, "explorer": "ppo"}, (*AGENT, *REGRESSION, *RUNS_500, *FIRST, *EAGER)),
    Words("chameleon-sa-as", "Chameleon: the sampling alone", "AutoTVM that measures one configuration of each kind. Takes "
          "hours.", f"{CHAMELEON}, 4.2: SA + AS", {**_AUTOTVM, "sampler": "adaptive"},
          (*ANNEALING_OF_AUTOTVM, *CLUSTERS, *REGRESSION, *RUNS_500, *SAMPLED, *EAGER)),
    Words("adatune-evaluator", "AdaTune: the timing alone", "AutoTVM that stops timing once the times agree. Takes hours.",
          f"{ADATUNE}; the authors' program", {**_AUTOTVM, "evaluator": "adaptive"},
          (*ANNEALING_OF_AUTOTVM, *REGRESSION, *BATCHES, *FIRST, *EAGER),
          more="The AutoTVM of Chameleon’s Table 8, with plans of 64 and trees that learn the speed; AdaTune’s script compares "
          "with plans of 32 and trees that rank."),
    Words("adatune-surrogate", "AdaTune: a fixed share of chance", "AdaTune as published, with 5 % of chance. Takes hours.",
          f"{ADATUNE}; the authors' program", _ADATUNE,
          (*_HALVED, *FOREST, *BATCHES, *_IMPROVEMENT, *numbers("search", "as AutoTVM", epsilon=0.05), *_PLANS_OF_32),
          more="Surrogate and timing, without the contextual optimizer."),
    Words("adatune-contextual", "AdaTune: long timings", "AdaTune as published, with 500 runs of each configuration. Takes "
          "hours.", f"{ADATUNE}; the authors' program", {**_ADATUNE, "evaluator": "fixed"},
          (*_HALVED, *FOREST, *RUNS_500, *_IMPROVEMENT, *_CONTEXTUAL, *_PLANS_OF_32),
          more="Surrogate and contextual optimizer, without the timing."),
)  # fmt: skip
