"""Pages say to a screen reader what they show: fields have labels, columns are headings, what is referred to is there."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network, Target
from apps.tuning import services
from apps.tuning.models import Job
from tests.apps.rows import Site

OPEN = {
    "inputs": [{"name": "ids", "dtype": "int64", "shape": ["batch", None]}],
    "dynamic": [{"input": "ids", "axis": 0, "symbol": "batch"}, {"input": "ids", "axis": 1, "symbol": None}],
}
DECIDED = {"rule": "belief", "chain": {"every": 3, "burn": 2, "ms": [[400.0, 420.0, 430.0]] * 5}}
VOID = ("input", "br", "hr", "img", "link", "meta")
STOPS = ("a", "button", "summary", "input", "select", "textarea")
REFERS = ("aria-labelledby", "aria-describedby")
NAMES = ("aria-labelledby", "aria-label")


class Read(HTMLParser):
    """What is wrong with a page, in words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.referred: set[str] = set()
        self.labelled: set[str] = set()
        self.fields: list[str] = []
        self.wrong: list[str] = []
        self.headings = 0
        self._label = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        for name in REFERS:
            self.referred |= set(given.get(name, "").split())
        if tag == "label":
            self._label = True
            self.labelled |= {given["for"]} if "for" in given else set()
        named = self._label or "aria-label" in given or given.get("type") == "hidden"
        if tag in ("input", "select", "textarea", "progress") and not named:
            self.fields.append(given.get("id", given.get("name", tag)))
        if given.get("tabindex") == "0" and not any(name in given for name in NAMES):
            self.wrong.append(f"a {tag} that the keyboard stops at has no name")
        if given.get("tabindex") == "0" and given.get("role") == "img":
            self.wrong.append(f"of a {tag} that is a picture the keys do not come to the page")
        if tag == "th" and "scope" not in given:
            self.wrong.append("a heading of no column or row")
        self.headings += tag == "h1"

    def handle_endtag(self, tag: str) -> None:
        if tag == "label":
            self._label = False

    def complaints(self) -> list[str]:
        twice = [f"{one} is there twice" for one in set(self.ids) if self.ids.count(one) > 1]
        nowhere = [f"{one} is referred to and not there" for one in self.referred - set(self.ids)]
        unnamed = [f"{one} has no label" for one in self.fields if one not in self.labelled]
        heading = [] if self.headings == 1 else [f"{self.headings} headings of the page"]
        return [*self.wrong, *twice, *nowhere, *unnamed, *heading]


class Anew(HTMLParser):
    """Of the `parts` of a page that are brought up to date, what the keyboard stops at and cannot be given back to: it has no
    id."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts, self.lost, self._depth = 0, list[str](), 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if not self._depth and "every" in (given.get("hx-trigger") or ""):
            self.parts, self._depth = self.parts + 1, 1
        elif self._depth:
            self._depth += tag not in VOID
            stops = tag in STOPS or given.get("tabindex") == "0"
            if stops and given.get("type") != "hidden" and "id" not in given:
                self.lost.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._depth:
            self._depth -= 1


def test_what_is_brought_up_to_date_gives_the_keyboard_its_place_back(site: Site, ada: Client) -> None:
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5, None), told.slot() | {"latency": 0.5, "decision": DECIDED}])
    services.request_artifact(run, site.ada)
    Job.objects.create(task="hardware", target=site.target)
    read = Network.objects.create(owner=site.ada, name="b", sha256="b" * 64, size=6, state="inspecting")
    of_network = [reverse(name, args=[read.pk]) for name in ("network", "example")]
    of_run = [reverse("operator", args=[run.pk, 0]), reverse("run", args=[run.pk])]
    waits = reverse("run", args=[site.run().pk])
    for address in (
        "/",
        "/networks/",
        "/targets/",
        *of_network,
        *of_run,
        waits,
        reverse("network", args=[run.network_id]),
    ):
        found = Anew(ada.get(address).content.decode())
        assert (found.parts > 0, found.lost) == (True, []), address
    Target.objects.update(kind="local", state="new")
    new = Anew(ada.get("/runs/new").content.decode())
    assert (new.parts, new.lost) == (1, [])


@pytest.mark.mutation
@pytest.mark.parametrize("lost", ["<a href='x'>", "<summary>", "<div tabindex='0'>", "<button>"])
def test_what_would_lose_the_keyboards_place_is_noticed(lost: str) -> None:
    part = f"<div hx-trigger='every 4s'><p><br><input type='hidden'></p>{lost}"
    assert len(Anew(part).lost) == 1
    assert Anew(f"{part[:-1]} id='x'>").lost == Anew(f"<div hx-trigger='load'>{lost}").lost == []


def test_every_page_can_be_read_aloud(site: Site, ada: Client) -> None:
    for _ in range(2):
        run, held, told = site.claimed(1)
        services.write(held, [told.batch(0.5), told.slot() | {"latency": 0.5, "decision": DECIDED}])
    services.request_artifact(run, site.ada)
    held = services.claim(Job.objects.get(task="compile").pk)
    assert held is not None
    services.conclude(held, "failed", "", "no linker", {"kind": "failed", "clock": 0.0, "reason": "no linker"})
    of_run = [
        reverse("run", args=[run.pk]),
        reverse("operator", args=[run.pk, 0]),
        reverse("run-file", args=[run.pk, "report.html"]),
    ]
    dynamic = Network.objects.create(owner=site.ada, name="b", sha256="b" * 64, size=6, state="ready", inspection=OPEN)
    of_network = [reverse(name, args=[run.network_id]) for name in ("network", "compared", "example")]
    sizes = reverse("network", args=[dynamic.pk])
    pages = (
        "/",
        "/networks/",
        "/storage/",
        "/targets/",
        "/methods/",
        "/runs/new",
        "/nothing/",
        *of_network,
        sizes,
        *of_run,
    )
    for address in pages:
        assert Read(ada.get(address).getvalue().decode()).complaints() == [], address
    for address in (sizes, "/runs/new"):  # and where something was filled in wrongly
        page = ada.post(address, {"minutes": "x"}).content.decode()
        assert "aria-invalid" in page
        assert Read(page).complaints() == [], address
    assert Read(Client().get("/login/").content.decode()).complaints() == []


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("<th>Name</th>", "a heading of no column or row"), ("<input name='x'>", "x has no label"),
        ("<p id='x'></p><p id='x'></p>", "x is there twice"), ("<h1></h1>", "2 headings of the page"),
        ("<div tabindex='0'>", "a div that the keyboard stops at has no name"),
        ("<canvas tabindex='0' role='img' aria-label='x'>", "of a canvas that is a picture the keys do not come to the page"),
        ("<input aria-label='x' aria-describedby='y'>", "y is referred to and not there"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_aloud_is_noticed(wrong: str, said: str) -> None:
    assert Read(f"<h1>Runs</h1>{wrong}").complaints() == [said]
