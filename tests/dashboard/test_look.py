"""Colours can be told from what they stand on, in the light and in the dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

WORDS = ("text", "soft", "accent", "good", "warn", "bad")
GROUNDS = ("page", "surface", "sunken", "accent-faint", "bad-faint")
SERIES = tuple(f"s{number}" for number in range(9))
AA, SHAPES = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11


def tokens(theme: str) -> dict[str, str]:
    sheet = Path(str(finders.find("css/tokens.css"))).read_text(encoding="utf-8")
    written = re.findall(r"--([\w-]+): var\(--light, (#[0-9a-f]{6})\) var\(--dark, (#[0-9a-f]{6})\);", sheet)
    return {name: light if theme == "light" else dark for name, light, dark in written}


def luminance(colour: str) -> float:
    """Relative, as WCAG 2.2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_what_the_definition_says() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def pale(colours: dict[str, str]) -> set[tuple[str, str]]:
    """What stands out too little from what it stands on."""
    pairs = [(word, ground, AA) for word in WORDS for ground in GROUNDS]
    pairs += [("on-accent", "accent", AA), ("on-accent", "accent-strong", AA)]
    pairs += [(name, "page", SHAPES) for name in SERIES]
    pairs += [("edge", "page", SHAPES), ("edge", "surface", SHAPES)]
    return {(one, other) for one, other, least in pairs if contrast(colours[one], colours[other]) < least}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_shapes_and_edges_stand_out(theme: str) -> None:
    assert pale(tokens(theme)) == set()


@pytest.mark.mutation
def test_a_paler_edge_is_noticed() -> None:
    assert pale({**tokens("light"), "edge": "#e2e4e3"}) == {("edge", "page"), ("edge", "surface")}
