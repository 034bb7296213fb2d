"""What each part changed is told where it is counted, and what changed nothing is said to."""

from __future__ import annotations

from typing import Any

import pytest

from workers.engine.evaluator import EVALUATORS
from workers.engine.explorer import EXPLORERS
from workers.engine.scheduler import SCHEDULERS
from workers.messages.effects import ADAPTING, BELIEVING, COMPARED, UNCOUNTED, Effect, effects_of

SEARCH = {
    "walks": 12, "reached": 610, "enumerated": 0, "evaluations": 5000, "explorer": 640, "not_greedy": 120, "left_out": 0,
}  # fmt: skip
TIMINGS = {"runs": 5760, "stopped": {"complete": 40, "converged": 400, "rejected": 200}}
PARTS = {"scheduler": "dynatune", "explorer": "ppo", "sampler": "adaptive", "evaluator": "adaptive"}
WALKED = "explorer: 610 of 640 candidates reached by walking"
SLOTS = "slots: 41, 6 decided by the belief, 40 unlike round-robin"
CHOSEN = "sampler: 120 of 640 candidates chosen against greedy"
NONE_CHOSEN = "sampler: 0 of 640 candidates chosen against greedy"
TIMED = "evaluator: 5\u202f760 runs in 640 timings, 40 to their end, 400 until they agreed, 200 ended as hopeless"
NO_SLOT = {"slots": 0, "decided_by_belief": 0, "differs_from_round_robin": 0}


def told(search: dict[str, Any] | None = None, parts: dict[str, str] | None = None, **report: Any) -> list[Effect]:
    decisions = {
        "slots": 41, "decided_by_belief": 6, "differs_from_round_robin": 40, "timings": TIMINGS, **report,
    }  # fmt: skip
    return effects_of({**decisions, "search": {**SEARCH, **(search or {})}, "parts": {**PARTS, **(parts or {})}})


def test_all_parts_that_worked_are_told_without_a_warning() -> None:
    assert told() == [Effect(SLOTS), Effect(WALKED), Effect(CHOSEN), Effect(TIMED)]
    assert told(search={"left_out": 64})[2].line == f"{CHOSEN}, 64 left out as superfluous"


@pytest.mark.parametrize(
    ("changed", "place", "said"),
    [
        (
            {"differs_from_round_robin": 0},
            0,
            "The scheduler changed nothing: every slot went where it would have gone in",
        ),
        ({"decided_by_belief": 0}, 0, "The belief changed nothing: no slot was decided by it."),
        (
            {"belief_differs": 0},
            0,
            "The belief changed nothing: what it decided went where it would have gone in turn.",
        ),
        ({"parts": {"scheduler": "gradient"}, "differs_from_round_robin": 0}, 0, "The scheduler changed nothing"),
        ({"search": {"reached": 0}}, 1, "The explorer changed nothing: it found what it began with."),
        ({"search": {"evaluations": 0, "walks": 0}}, 1, "no operator was measured often enough to learn from."),
        ({"search": {"not_greedy": 0}}, 2, "The sampler changed nothing: it chose as greedy would have."),
        (
            {"timings": {"runs": 9000, "stopped": {"complete": 30}}},
            3,
            "The evaluator changed nothing: every timing went on",
        ),
        ({"timings": {"runs": 9000, "stopped": {"complete": 30, "late": 2}}}, 3, "every timing went on to its end."),
    ],
)
def test_a_part_that_changed_nothing_is_said_to(changed: dict[str, Any], place: int, said: str) -> None:
    found = told(**changed)
    assert [bool(effect.idle) for effect in found] == [i == place for i in range(4)]
    assert said in found[place].idle
    assert found[place].line == f"{found[place].text}. {found[place].idle}"


@pytest.mark.parametrize(
    ("changed", "texts"),
    [
        ({"parts": {"scheduler": "round_robin"}, "differs_from_round_robin": 0}, ["slots: 41", WALKED, CHOSEN, TIMED]),
        ({"parts": {"sampler": "greedy"}, "search": {"not_greedy": 0}}, [SLOTS, WALKED, TIMED]),
        (
            {"belief_differs": 5},
            [
                "slots: 41, 6 decided by the belief (5 of them unlike round-robin), 40 unlike round-robin",
                WALKED,
                CHOSEN,
                TIMED,
            ],
        ),
        (
            {"search": {"samplings": 20, "handed": 5120, "clusters": 324, "synthesised": 12}},
            [SLOTS, WALKED, f"{CHOSEN}, 16.2 clusters of 256 candidates in the mean, 12 synthesised", TIMED],
        ),
        (
            {"contextual": True, "search": {"steered": 640, "chance": 198.4, "doubted": 600}},
            [SLOTS, WALKED, CHOSEN, "contextual optimizer: 31 % by chance in the mean", TIMED],
        ),
        ({"search": {"steered": 640, "chance": 32.0, "doubted": 0}}, [SLOTS, WALKED, CHOSEN, TIMED]),
        (
            {"operators": 1, "differs_from_round_robin": 0},
            ["slots: 41, 6 decided by the belief, 0 unlike round-robin", WALKED, CHOSEN, TIMED],
        ),
        ({"parts": {"explorer": "random"}, "search": {"evaluations": 0}}, [SLOTS, CHOSEN, TIMED]),
        (
            {"search": {"not_greedy": 0, "left_out": 64}},
            [SLOTS, WALKED, f"{NONE_CHOSEN}, 64 left out as superfluous", TIMED],
        ),
        (
            {"search": {"reached": 0, "enumerated": 640}},
            [SLOTS, "explorer: 640 candidates of sketches scored whole, no walk", CHOSEN, TIMED],
        ),
        (
            {"search": {"enumerated": 30}},
            [
                SLOTS,
                "explorer: 610 of 610 candidates reached by walking, 30 more of sketches scored whole",
                CHOSEN,
                TIMED,
            ],
        ),
        (
            {"parts": {"evaluator": "fixed"}, "timings": {"runs": 15000, "stopped": {"complete": 30}}},
            [SLOTS, WALKED, CHOSEN, "evaluator: 15\u202f000 runs in 30 timings, 30 to their end"],
        ),
        (
            {**NO_SLOT, "search": {"evaluations": 0, "explorer": 0}, "timings": {}},
            ["slots: 0, 0 decided by the belief, 0 unlike round-robin"],
        ),
    ],
)
def test_what_cannot_change_anything_or_is_not_counted_is_no_warning(changed: dict[str, Any], texts: list[str]) -> None:
    assert told(**changed) == [Effect(text) for text in texts]


def test_a_contextual_optimizer_that_was_never_in_doubt_is_said_to_have_changed_nothing() -> None:
    one = told(contextual=True, search={"steered": 640, "chance": 32.0, "doubted": 0})[3]
    assert one.text == "contextual optimizer: 5 % by chance in the mean"
    assert one.idle.startswith("The contextual optimizer changed nothing: the cost model was never in doubt")


def test_who_knows_no_parts_says_what_was_counted() -> None:
    slots = {"slots": 3, "decided_by_belief": 0, "differs_from_round_robin": 0}
    assert effects_of(slots) == [Effect("slots: 3, 0 decided by the belief, 0 unlike round-robin")]
    assert effects_of({}) == []
    assert effects_of({"search": SEARCH}) == [Effect(WALKED), Effect(CHOSEN)]
    assert effects_of({"timings": TIMINGS}) == [Effect(TIMED)]


def test_a_report_of_before_candidates_were_counted_says_nothing_of_its_walks() -> None:
    counted = {name: count for name, count in SEARCH.items() if name not in ("reached", "enumerated")}
    assert effects_of({"search": {**counted, "improved": 9}}) == [Effect(CHOSEN)]
    went_on = {**SEARCH, "reached": 3, "improved": 9}  # by the version that counts them
    assert effects_of({"search": went_on}) == [Effect(CHOSEN)]


def test_a_search_says_where_its_seconds_went() -> None:
    report = {"searched": {"plan": 0.01, "fit": 1.26, "explore": 4.0, "another": 0.2}}
    assert effects_of(report) == [Effect("search: 4.0 s walking, 1.3 s fitting, 0.2 s another")]


def test_the_names_are_the_engine_s() -> None:
    assert set(BELIEVING) < set(COMPARED) < set(SCHEDULERS)
    assert set(UNCOUNTED) < set(EXPLORERS)
    assert set(ADAPTING) < set(EVALUATORS)
