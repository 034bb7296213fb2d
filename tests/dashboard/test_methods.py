"""The page of methods, and whether it says what the engine does."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client

from apps.dashboard.methods import CHOICES, GROUPS, PARTS, ROLES, Words
from apps.tuning.methods import METHODS as NAMES
from workers.engine.methods import METHODS
from workers.engine.methods import ROLES as PARTS_OF_A_METHOD
from workers.engine.methods.method import REGISTRIES


def test_every_method_is_told_once_and_the_recommended_one_first() -> None:
    names = [words.name for words in CHOICES]
    assert len(names) == len(set(names))
    assert set(names) == set(NAMES) == set(METHODS)
    assert names[0] == "auto"
    assert [group.title for group in GROUPS if group.everyday] == ["Recommended"]
    titles = [words.title for words in CHOICES]
    assert len(titles) == len(set(titles))


def engine_s(name: str) -> tuple[dict[str, str], dict[str, dict[str, object]]]:
    """Parts and parameters; an empty set of numbers says nothing."""
    preset = METHODS[name]
    parts = {role: getattr(preset, role) for role in PARTS_OF_A_METHOD}
    return parts, {role: dict(numbers) for role, numbers in preset.parameters.items() if numbers}


def told(words: Words) -> tuple[dict[str, str], dict[str, dict[str, object]]]:
    return dict(words.parts), words.parameters


@pytest.mark.parametrize("words", CHOICES, ids=lambda words: words.name)
def test_parts_and_numbers_are_the_engine_s_and_each_has_its_source(words: Words) -> None:
    assert told(words) == engine_s(words.name)
    assert all(number.source for number in words.numbers)
    assert words.paper
    assert words.text.endswith(".")


@pytest.mark.mutation
def test_mutation_a_number_that_changed_in_the_engine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    words = next(one for one in CHOICES if one.name == "chameleon")
    preset = METHODS["chameleon"]
    monkeypatch.setitem(
        METHODS, "chameleon", replace(preset, parameters={**preset.parameters, "search": {"pool": 4.0}})
    )
    assert told(words) != engine_s("chameleon")


def test_every_part_that_a_method_uses_is_explained() -> None:
    used = {(role, part) for words in CHOICES for role, part in words.parts.items()}
    explained = {(role, part.name) for role, parts in PARTS.items() for part in parts}
    assert explained == used
    assert all(name in REGISTRIES[role] for role, name in explained)
    assert set(ROLES) == {*PARTS_OF_A_METHOD, "search", "rhythm"}


def test_the_page_has_an_anchor_for_every_method_and_part_and_no_link_leads_nowhere(ada: Client) -> None:
    page = ada.get("/methods/").content.decode()
    anchors = re.findall(r' id="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert set(NAMES) <= set(anchors)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)
    assert "Chameleon, Tables 7 and 9" in page
    assert "chains = 128" in page


def test_the_page_is_for_who_signed_in(db: None) -> None:
    assert Client().get("/methods/").status_code == 302


def test_a_new_run_offers_every_method_and_the_way_to_the_page(ada: Client, site: object) -> None:
    page = ada.get("/runs/new").content.decode()
    assert re.findall(r'name="method" value="([^"]+)"', page) == [words.name for words in CHOICES]
    assert 'href="/methods/"' in page
