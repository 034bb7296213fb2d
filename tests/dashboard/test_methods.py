"""The page of methods, and the way to it."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from workers.messages.methods import PRESETS


@pytest.mark.django_db
def test_the_page_s_contents_say_nothing_twice_and_send_nobody_to_a_file_of_the_sources(ada: Client) -> None:
    page = ada.get("/methods/").content.decode().partition("<main")[2]
    contents = re.sub(r"<[^>]+>|\s+", " ", page[page.index('class="contents"') :].partition("</ul>")[0]).split()
    assert contents[1:2] == ["Recommended"]
    assert contents.count("Recommended") == 1
    assert "README" not in page


def test_the_page_has_an_anchor_for_every_method_and_part_and_no_link_leads_nowhere(ada: Client) -> None:
    page = ada.get("/methods/").content.decode()
    anchors = re.findall(r' id="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert {*PRESETS} <= set(anchors)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)
    assert "Chameleon, Tables 7 and 9" in page
    assert "chains = 128" in page
    assert 'id="part-sampler-diverse"' in page
    assert "sampling = walkers 40, steps 120, burn 100, samples 400, points 10, again 60" in page


def test_the_page_is_for_who_signed_in(db: None) -> None:
    assert Client().get("/methods/").status_code == 302


def test_a_new_run_offers_every_method_and_the_way_to_the_page(ada: Client, site: object) -> None:
    page = ada.get("/runs/new").content.decode()
    assert re.findall(r'name="method" value="([^"]+)"', page) == [*PRESETS]
    assert 'href="/methods/"' in page
