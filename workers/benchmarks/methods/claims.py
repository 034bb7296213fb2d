"""The papers' claims, the targets set for this product, and what the cells say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workers.benchmarks.cells import Cell
from workers.benchmarks.interval import Interval
from workers.benchmarks.methods.arms import (
    AE,
    AE_AS,
    AE_AS_ON,
    DIVERSE,
    DIVERSE_AE,
    NEXT,
    PAPER,
    PAPER_RULE,
    RANKING,
    SA,
    SA_AS,
    WIDE_AE_AS,
    WIDE_SA_AS,
)
from workers.benchmarks.methods.best import NEAR, Groups, by_network, lacking, recommended, rivals
from workers.benchmarks.methods.claim import NO_TARGET, OPEN, Claim, Target
from workers.benchmarks.methods.compare import (
    Measure,
    Runs,
    Share,
    affordable,
    decision_seconds,
    fewer,
    foretold,
    gained,
    gaining,
    grouped,
    held,
    held_of_gaining,
    measuring,
    most_in_time,
    not_scheduling,
    operator_quality,
    own_seconds,
    quality,
    quality_in_time,
    ratios,
    regretted,
    scored_a_search,
    searching,
    version_of,
    without_width,
)
from workers.benchmarks.methods.reach import (
    Reach,
    ahead_from,
    measurements_to_same,
    seconds_to_base,
    seconds_to_same,
    time_to_final,
    time_to_near,
    time_to_same,
)
from workers.benchmarks.methods.replayed import CURVE, SPACE
from workers.benchmarks.text_table import aligned
from workers.messages.composition import POOL
from workers.messages.methods import BEST

NOT_RUN = "not run"


def probed(name: str, times: float = 1.0, ratio: bool = False) -> Measure:
    """A figure of a probe of the landscape (`probes`), so many times; of a `ratio` 0 is what never came."""

    def measure(base: Cell, arm: Cell) -> list[float]:
        found = arm["probe"].get(name)
        return [] if found is None or not math.isfinite(found) else [times * found]

    return measure if ratio else Share(measure)


def asked(name: str = "n") -> Callable[[Cell, Cell], int]:
    """Of how many a probe's shares are."""
    return lambda base, arm: int(arm["probe"][name])


ANY = (CURVE, "live")
SEARCH = (SPACE, "live")
EVERYWHERE = (CURVE, SPACE, "live")
_FINAL = "time to the other's final latency"
_TIME = "time to within 1 % of the other's final latency"

CLAIMS = (
    *(
        Claim(source, f"{until}, DynaTune over {words}", reported, "dynatune", base, measure, ANY, every=every, but=but,
              somewhere=somewhere)
        for source, words, reported, base, every, but, somewhere in (
            ("DynaTune 5.1, Fig. 7", "sequential", "1.2-2.4x", "sequential", 1.2, 0.0, 2.4),
            ("DynaTune 5.2, Fig. 8", "random", "1.1-2.4x", "random_slots", 1.1, 0.0, None),
            ("DynaTune 5.2, Fig. 8", "round-robin", "1.1-2.4x", "round_robin", 1.1, 0.0, None),
            ("DynaTune 5.2, Fig. 8", "linear", "1.1-2.4x", "linear", 1.1, 0.0, None),
            ("DynaTune 5.3, Fig. 9", "dynamic allocation, random", "1-1.4x", "dynamic_random", 1.0, 0.0, 1.2),
            ("DynaTune 5.3, Fig. 9", "dynamic allocation, round-robin", "1-1.4x", "dynamic_round_robin", 1.0, 0.0, 1.2),
            ("DynaTune App. C, Fig. 20-21", "Ansor's gradient", "faster on 3 of 4", "gradient", 1.0, 0.25, None),
        )
        for until, measure in ((_FINAL, time_to_final), (_TIME, time_to_same))
    ),
    # The bonus of 1 ms is many times what a slot brings to a network of some ms, and 100 s are a whole run of it.
    *(
        Claim("DynaTune 5.1, Fig. 7", f"{until}, DynaTune with the paper's {words}, over sequential", "1.2-2.4x", arm,
              "sequential", measure, ANY, every=1.2, somewhere=2.4)
        for words, arm in (("numbers", PAPER), ("rule in our slots", PAPER_RULE))
        for until, measure in ((_FINAL, time_to_final), (_TIME, time_to_same))
    ),
    *(
        Claim("DynaTune App. C, Fig. 20-21", f"seconds {words}", "-", "dynatune", "gradient", measure, ANY)
        for words, measure in (("to within 1 % of the final latency of Ansor's gradient: DynaTune", seconds_to_base),
                               ("to within 1 % of the final latency of Ansor's gradient: the gradient itself", own_seconds),
                               ("from which on DynaTune is never behind Ansor's gradient", ahead_from))
    ),
    *(
        Claim("DynaTune 5.1, Fig. 7", f"time to the latency of the oracle + 2 %, oracle {words} over DynaTune", "close",
              "dynatune", base, time_to_near, ANY, every=1 / 1.1)
        for words, base in (("that looks one slot ahead (4.1)", NEXT), ("that looks over plateaus too", "oracle"))
    ),
    *(
        Claim("DynaTune 4.1", f"mean regret over the slots, {words} over DynaTune", "-", "dynatune", base, regretted, (CURVE,))
        for base, words in (
            ("sequential", "sequential"), ("random_slots", "random"), ("round_robin", "round-robin"), ("linear", "linear"),
            ("gradient", "Ansor's gradient"), ("epsilon_greedy", "epsilon-greedy"), ("softmax", "softmax"),
            (NEXT, "the oracle that looks one slot ahead"),
        )
    ),
    *(
        Claim("DynaTune App. A, Fig. 14-18", f"{_TIME}, DynaTune over {words}", "very similar", "dynatune", base,
              time_to_same, ANY, every=0.9, most=1 / 0.9)
        for base, words in (("epsilon_greedy", "epsilon-greedy"), ("softmax", "softmax"))
    ),
    *(
        Claim("DynaTune 5.4, Fig. 10", f"{_TIME}, DynaTune over Chameleon, {words}", "1.4-4.7x", arm, base, time_to_same,
              SEARCH, every=1.4)
        for words, arm, base in (("both with our numbers", "dynatune", "chameleon"), ("as published", PAPER, AE_AS))
    ),
    # The paper's base is TVM's hand-written schedules, which are no longer in TVM: code without records is naive loops, and
    # first configurations are so much slower that nearly every run would pass.
    Claim("DynaTune 5.5, Fig. 11", "network at the end over its first configurations (paper: over untuned TVM)",
          "up to 26.7 %", "dynatune", "dynatune", gained, SEARCH),
    Claim("DynaTune 5.5, Fig. 11", "network at the end, DynaTune over sequential", "similar", "dynatune", "sequential",
          quality, SEARCH, every=0.97),
    # No claim of the paper: whether its posterior says where an operator's speed will be after a slot. A slot ends with the
    # best so far or with an observation over it; the curves alone lie over the best, with which most slots end.
    Claim("DynaTune 4.3", "share of slots that ended in the belief's middle 80 %: the best so far, or a curve with its noise "
          "where that is over it", "-", "belief", "belief", probed("ends"), (CURVE,), every=0.7, most=0.9,
          events=asked(), fewest=500),
    Claim("DynaTune 4.3", "the same share of the slots that gained", "-", "belief", "belief", probed("gained"),
          (CURVE,), events=asked("gains")),
    Claim("DynaTune 4.3", "share of slots that ended in the middle 80 % of the curves alone, which are over the best so far",
          "-", "belief", "belief", probed("curves"), (CURVE,), events=asked()),
    # No claim of a paper either: whether what people are shown may be. Where most slots bring nothing, an interval without
    # width holds too; how often it has none and what it is worth for the others stands beside it.
    Claim("product", "share of slots that ended in the 80 % interval that was told, by the theory of records", "-",
          "dynatune", "dynatune", held, EVERYWHERE, every=0.7, most=0.9, events=foretold, fewest=500),
    Claim("product", "share of those slots that were told to bring nothing: intervals without width", "-", "dynatune",
          "dynatune", without_width, EVERYWHERE, events=foretold),
    Claim("product", "share in that interval of those slots that brought something", "-", "dynatune", "dynatune",
          held_of_gaining, EVERYWHERE, events=gaining),
    Claim("DynaTune 5.5, Fig. 12", "share of the clock that is not scheduling", "98.6 %", "dynatune", "dynatune",
          not_scheduling, ANY, every=0.986),
    *(
        Claim("DynaTune 5.5, Fig. 12", f"seconds of a decision of 30 operators, {words}", "1.44 s", "timings", "timings",
              probed(figure), (CURVE,), most=most, timed=True)
        for words, figure, most in (("the paper's setting", "paper_decision", 0.15), ("as recommended", "decision", 0.05))
    ),
    Claim("DynaTune 5.5, Fig. 12", "seconds of a decision, as recommended", "1.44 s", BEST.name, BEST.name,
          decision_seconds, ("live",), most=0.05),
    Claim("DynaTune 5.5, Fig. 12", "share of decisions with the same operator first as by the paper's sampling, whatever "
          "comes behind it", "-", "decisions", "decisions", probed("same"), (CURVE,), every=0.95, events=asked()),
    Claim("DynaTune 5.5, Fig. 12", "rank correlation of the operators' indices with those of the paper's sampling, median "
          "of the decisions", "-", "decisions", "decisions", probed("ranked"), (CURVE,), events=asked()),
    *(
        Claim("DynaTune 5.5, Fig. 12", f"the same {words} between two runs of the paper's sampling", "-", "decisions",
              "decisions", probed(figure), (CURVE,), events=asked())
        for words, figure in (("share", "paper_same"), ("correlation", "paper_ranked"))
    ),
    # Two operators with nearly the same index may change places for nothing: what is given up is what matters.
    Claim("DynaTune 5.5, Fig. 12", "per cent of the index given up, by the paper's sampling, where another operator is first, "
          "mean of all decisions", "-", "decisions", "decisions", probed("lost", 100), (CURVE,), most=1.0, events=asked()),
    Claim("DynaTune 5.5, Fig. 12", "the same of the decision that gives up most", "-", "decisions", "decisions",
          probed("most", 100), (CURVE,), events=asked()),
    *(
        Claim("DynaTune 5.5, Fig. 12", f"the same {words} between two runs of the paper's sampling", "-", "decisions",
              "decisions", probed(figure, 100), (CURVE,), events=asked())
        for words, figure in (("mean", "paper_lost"), ("most", "paper_most"))
    ),
    # Figure 7a has the steps in which either comes to its own solution. In the recorded parts, of some thousand
    # configurations, annealing soon has scored everything.
    *(
        Claim("Chameleon 4.1, Fig. 7a", f"{text}, PPO under annealing in every tiling of the largest operators, synthetic "
              f"speeds, {words}", reported, "explorers", "explorers", probed(f"{figure}_{agent}"), (SPACE,), median=median)
        for agent, words in (("paper", "the paper's numbers"), ("product", "ours"))
        for figure, text, reported, median in (
            ("own", "search steps to within 1 % of the own best score", "2.88x", 2.88),
            ("steps", "the same to the best score that both come to", "-", None),
            ("best", "the best score in the end, as speed (over annealing's)", "-", None),
        )
    ),
    Claim("Chameleon 4.1, Fig. 7a", "search steps to the best, each of 128 configurations, PPO under annealing", "2.88x", AE,
          SA, scored_a_search, ("live",), median=2.88),
    *(
        Claim(f"Chameleon {section}", f"seconds that {words} takes for a plan, our numbers", "-", "timings", "timings",
              probed(figure), (CURVE,), most=1.0, timed=True)
        for section, words, figure in (("3.2", "the agent", "agent"), ("3.3", "clustering", "clustering"))
    ),
    Claim("Chameleon 4.2, Fig. 7b", "measurements for the same best, adaptive sampling, annealing", "1.98x", SA_AS, SA,
          measurements_to_same, SEARCH, median=1.98),
    Claim("Chameleon 4.2, Fig. 7b", "measurements for the same best, adaptive sampling, PPO", "2.33x", AE_AS_ON, AE,
          measurements_to_same, SEARCH, median=2.33),
    # There, too, the parts are too small: often a first plan has one that is as good.
    *(
        Claim("Chameleon 4.2, Fig. 7b", f"the same in every tiling of the largest operators, synthetic speeds, {words}, "
              f"{numbers}", reported, "samplers", "samplers", probed(f"{explorer}_{kind}", ratio=True), (SPACE,), median=median)
        for explorer, words, reported, median in (("annealing", "annealing", "1.98x", 1.98), ("agent", "PPO", "2.33x", 2.33))
        for kind, numbers in (("paper", "as the paper has it"), ("best", f"of {POOL:g} plans the best of each cluster"))
    ),
    *(
        Claim("Chameleon 4.2, Fig. 8", f"network at the end, adaptive over diverse sampling, {words}, both of {POOL:g} plans' "
              "candidates", reported, arm, base, quality, SEARCH, median=median)
        for words, reported, arm, base, median in (("annealing", "13.5 %", WIDE_SA_AS, DIVERSE, 1.135),
                                                   ("PPO", "19.0 %", WIDE_AE_AS, DIVERSE_AE, 1.19))
    ),
    Claim("Chameleon 4.3, Fig. 9", "measurements in all, Chameleon, which ends after 16 iterations, under AutoTVM", "-", AE_AS,
          SA, fewer, SEARCH),
    Claim("Chameleon 4.3, Fig. 10a", "time to the same best of an operator, Chameleon over AutoTVM", "4.82x", AE_AS, SA,
          seconds_to_same, SEARCH, median=4.82),
    Claim("Chameleon 4.3, Fig. 10a", "an operator at the end, Chameleon over AutoTVM", "1.17x", AE_AS, SA,
          operator_quality, SEARCH, median=1.17),
    # On a CPU timing costs little beside the agent (DynaTune 5.4): either sign is a result.
    Claim("Chameleon 4.3, Table 2", f"{_TIME}, Chameleon over AutoTVM", "4.45x (GPU)", AE_AS, SA, time_to_same, SEARCH),
    Claim("Chameleon 4.3, Table 2", "share of the clock that is search, Chameleon", "-", AE_AS, SA, searching, SEARCH),
    Claim("Chameleon 4.3, Table 2", "share of the clock that is search, AutoTVM", "-", SA, SA, searching, SEARCH),
    Claim("Chameleon 4.3, Table 2", "part of its search with which Chameleon would be as fast (0: not with a free one)", "-",
          AE_AS, SA, affordable, SEARCH),
    Claim("Chameleon 4.3, Table 3", "network at the end, Chameleon over AutoTVM", "up to 6.4 %", AE_AS, SA, quality,
          SEARCH, somewhere=1.064),
    *(
        Claim("AdaTune, evaluator", f"{text}, {words}", "-", "evaluators", "evaluators", probed(f"{figure}_{preset}"),
              (SPACE,), every=every, most=most, events=asked())
        for preset, words in (("paper", "program's numbers"), ("product", "ours"))
        for figure, text, every, most in (
            ("fixed_over", "measuring time, adaptive under 500 runs", 3.0, math.inf),
            ("metaschedule_over", "measuring time, adaptive under MetaSchedule's 100 ms", 1.5, math.inf),
            ("unranked", "rank correlation under that of 500 runs measured twice", None, 0.01),
        )
    ),
    Claim("AdaTune, evaluator", "measuring time a trial in runs with the same result, adaptive under 500 runs", "-",
          "adatune-evaluator", SA, measuring, SEARCH, every=3.0),
    *(
        Claim("AdaTune, surrogate", f"share in the calibrated 80 % interval, configurations {words}", "-", "surrogate",
              "surrogate", probed(figure), (SPACE,), every=0.7, most=0.9, events=asked(), fewest=500)
        for figure, words in (("drawn", "like those it knows"), ("proposed", "that it proposed"))
    ),
    *(
        Claim("AdaTune", f"{_TIME}, AdaTune over AutoTVM, {words}", "1.3-3.9x", arm, base, time_to_same, SEARCH, every=1.3,
              median=2.0)
        for arm, base, words in (
            ("adatune-paper", RANKING, "as the program has both (ranking trees, whose walk forgives by speed)"),
            ("adatune-paper", SA, "AutoTVM as Chameleon has it"),
            ("adatune", "sequential", "both with our timings and walks"),
        )
    ),
    Claim("AdaTune", f"{_TIME}, our AdaTune over AutoTVM as published", "-", "adatune", SA, time_to_same, SEARCH),
    Claim("AdaTune", "speed in half of AutoTVM's time in an operator, of the one that gains most, AdaTune over AutoTVM, as the "
          "program has both", "up to 115 %", "adatune-paper", RANKING, most_in_time, SEARCH, somewhere=2.15),
    Claim("AdaTune", "the same, median of the operators", "-", "adatune-paper", RANKING, quality_in_time, SEARCH),
)  # fmt: skip


def evaluated(cells: Sequence[Cell], probes: Sequence[Cell] = ()) -> list[dict[str, Any]]:
    """A row a claim: {source, text, reported, target, networks: {name: interval}, apart: names of networks on which arm and
    base were made by different versions of the code, notes: what is said beside a network's figure, events: of how many a
    share is, fewest, ours, holds and met (see `Target`), cuda}. `probes` are cells whose arm is a probe's name."""
    runs = grouped(cells)
    groups = _beside(runs, probes)
    return [_row(claim, groups) for claim in CLAIMS] + _recommended(runs)


def _beside(runs: Groups, probes: Sequence[Cell]) -> Groups:
    """`runs` with the probes of their landscapes as arms. A probe is compared with no other: each has a latest of its own,
    whose landscape may have had other prices than another's."""
    found = {where: dict(arms) for where, arms in runs.items()}
    for probe in {cell["key"]["arm"] for cell in probes}:
        for where, arms in grouped([cell for cell in probes if cell["key"]["arm"] == probe]).items():
            found.setdefault(where, {}).update(arms)
    return dict(sorted(found.items()))


def _row(claim: Claim, groups: Groups) -> dict[str, Any]:
    pairs = {
        f"{network} ({kind})": (arms[claim.base], arms[claim.arm])
        for (kind, network), arms in groups.items()
        if kind in claim.kinds and {claim.arm, claim.base} <= arms.keys()
    }
    found = {name: ratios(base, arm, claim.measure) for name, (base, arm) in pairs.items()}
    share = isinstance(claim.measure, Share)
    networks = {name: Interval.of(values, share) for name, values in found.items() if values}
    events = None
    if claim.events is not None:
        each = [
            (base[seed], arm[seed]) for base, arm in (pairs[name] for name in networks) for seed in base.keys() & arm
        ]
        events = sum(claim.events(base, arm) for base, arm in each)
    apart = [name for name in networks if len({version_of(runs) for runs in pairs[name]}) > 1]
    notes = {
        name: [*_arrived(claim.measure, *pairs[name]), *(["two versions"] if name in apart else [])]
        for name in networks
    }
    return _told((claim.source, claim.text, claim.reported), claim, networks, apart, events, notes)


def _arrived(measure: Measure, base: Runs, arm: Runs) -> list[str]:
    """How much of the arm comes where the base ended, if not all."""
    if not isinstance(measure, Reach):
        return []
    found = measure.censored([(base[seed], arm[seed]) for seed in sorted(base.keys() & arm.keys())])
    return [found] if found else []


def _recommended(groups: Groups) -> list[dict[str, Any]]:
    """No claim of a paper: whether what is recommended is the best there is."""
    near, rows = f"time to within {NEAR:.0%} of the lowest latency that any method reached", []
    for kind in sorted({kind for kind, _ in groups}):
        ours = recommended(groups, kind)
        found = rivals(groups, kind)
        against = {f"{arm} ({kind})": ratio for arm, ratio in found.items()}
        notes = {f"{arm} ({kind})": _unsearched(groups, kind, arm) for arm in found}
        without = (
            f", without {', '.join(missing)}, which some network lacks" if (missing := lacking(groups, kind)) else ""
        )
        words = ("product", f"{near}, each method's over {ours}'s{without}", "-")
        rows.append(_told(words, Target(every=1.0), against, notes=notes))
        words = ("product", f"{near}, the best other's over {ours}'s, by network", "-")
        rows.append(_told(words, Target(), by_network(groups, kind)))
    return rows


def _unsearched(groups: Groups, kind: str, arm: str) -> list[str]:
    """In how many runs its search never began: what it measured then are first and random configurations, whatever its name. Of
    recorded searches nothing is known."""
    if kind == CURVE:
        return []
    cells = [cell for (of, _), arms in groups.items() if of == kind for cell in arms.get(arm, {}).values()]
    begun = [bool(cell["search"]["walks"]) for cell in cells if "walks" in cell.get("search", {})]
    missing = begun.count(False)
    return [f"its search begins in {len(begun) - missing} of {len(begun)} runs"] if missing else []


def _told(
    words: tuple[str, str, str],
    wanted: Target,
    networks: Mapping[str, Interval],
    apart: Sequence[str] = (),
    events: int | None = None,
    notes: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    notes = notes or dict.fromkeys(networks, ())
    found = list(networks.values())
    return {
        **dict(zip(("source", "text", "reported"), words, strict=True)),
        "target": wanted.target,
        "networks": {name: vars(of) for name, of in networks.items()},
        "apart": list(apart),
        "notes": dict(notes),
        "events": events,
        "fewest": wanted.fewest,
        "ours": "; ".join(f"{name} {_ours(of, notes[name])}" for name, of in networks.items()) or NOT_RUN,
        "holds": wanted.holds(found, events),
        "met": wanted.met(found, events),
        "cuda": NOT_RUN,
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """For a terminal: a line a claim and network."""
    lines = [["claim", "paper", "target", "ours [95 %]", "holds", "CUDA"]]
    for row in rows:
        count = "" if row["events"] is None else f"n = {row['events']:,}"
        head = [f"{row['source']}: {row['text']}", row["reported"], row["target"], count]
        lines.append([*head, _holds(row), row["cuda"]])
        for name, found in row["networks"].items():
            lines.append([f"  {name}", "", "", _ours(Interval(**found), row["notes"][name]), "", ""])
    return aligned(lines)


def _holds(row: Mapping[str, Any]) -> str:
    if not row["networks"]:
        return NOT_RUN
    if row["events"] is not None and row["events"] < row["fewest"]:
        return "too few"
    if row["holds"] == OPEN:
        return f"{OPEN}, medians {'meet' if row['met'] else 'miss'} it"
    return row["holds"] or NO_TARGET


def _ours(interval: Interval, notes: Sequence[str]) -> str:
    """With n, the number of seeds."""
    count = "" if interval.bounds is None else f" (n = {interval.count})"
    return ", ".join((f"{interval}{count}", *notes))
