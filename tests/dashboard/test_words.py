"""One word for a state, wherever it is said."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from apps.dashboard import words
from apps.tuning import services
from apps.tuning.models import Job, TuningRun
from apps.tuning.waiting import Wait
from tests.apps.rows import Site
from workers.engine.ports import KNOWN


@pytest.mark.parametrize(
    ("state", "wanted", "reason", "word"),
    [
        ("queued", "continue", "", "waiting"), ("running", "continue", "", "running"), ("running", "pause", "", "pausing"),
        ("paused", "continue", "", "paused"), ("stopping", "keep", "", "stopping"), ("failed", "continue", "", "failed"),
        ("interrupted", "continue", "", "interrupted, goes on by itself"), ("done", "continue", "stopped", "stopped"),
        ("done", "continue", "seconds", "done: time is up"), ("done", "continue", "", "done"),
    ],
)  # fmt: skip
def test_every_page_says_the_same_of_a_state(
    site: Site, ada: Client, state: str, wanted: str, reason: str, word: str
) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004)])
    TuningRun.objects.filter(pk=run.pk).update(finished_reason=reason)
    Job.objects.filter(pk=run.job_id).update(state=state, wanted=wanted, lease_until=None)
    for address in ("/", reverse("run", args=[run.pk]), reverse("operator", args=[run.pk, 0])):
        page = ada.get(address).content.decode().replace('<span data-part="state-word">', "")
        assert f"</svg>{word}</span>" in page, address
        assert f' data-state="{state}"><svg' in page, address


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (Wait(0, 0.0, True), ""),
        (Wait(1, None, True), "1 run before this one"),
        (Wait(1, 12.0, True), "1 run before this one, about 1 min"),
        (Wait(2, 390.0, True), "2 runs before this one, about 7 min"),
        (Wait(0, 0.0, True, machine=True), "a machine is being measured first"),
        (
            Wait(1, 12.0, True, machine=True),
            "a machine is being measured first, then 1 run before this one, about 1 min",
        ),
    ],
)
def test_who_waits_is_told_how_long(wait: Wait, text: str) -> None:
    assert words.before(wait) == text


WORKERS = Path(__file__).resolve().parents[2] / "workers"


def rules(source: str) -> Iterator[str]:
    """That a scheduler tells: second of a Decision, of what chooses for one, and of what is called `rule` there."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name("Decision"), args=[_, rule, *_]):
                pass
            case ast.Return(value=ast.Tuple(elts=[_, rule, _])):
                pass
            case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name("rule")])], value=ast.Tuple(elts=[_, rule])):
                pass
            case ast.Assign(targets=[ast.Name("rule")], value=rule):
                pass
            case _:
                continue
        parts = (part.value for part in ast.walk(rule) if isinstance(part, ast.Constant))
        yield from (value for value in parts if isinstance(value, str))


def test_every_rule_of_a_scheduler_has_its_words_and_no_other() -> None:
    """But for the oracle's, which is shown what comes: no run of the site has it."""
    files = [path for path in (WORKERS / "engine" / "scheduler").glob("*.py") if path.name != "oracle.py"]
    assert {rule for path in files for rule in rules(path.read_text())} == set(words.RULES)


def test_every_origin_of_a_configuration_has_its_words_and_no_other() -> None:
    files = [path for room in ("engine", "pipeline", "tvm_backend") for path in (WORKERS / room).glob("*.py")]
    made = r'(?:\b_new|\bCandidate)\(.*?, "([a-z]+)"[,)]|\borigin="([a-z]+)"'
    texts = [path.read_text().replace("KNOWN", f'"{KNOWN}"') for path in files]
    assert {one or other for text in texts for one, other in re.findall(made, text)} == set(words.ORIGINS)


def test_every_account_of_the_clock_has_its_words_and_no_other() -> None:
    """Those of the loop by group, and what its backend keeps count of."""
    loop = "".join((WORKERS / "pipeline" / f"{name}.py").read_text() for name in ("books", "loop", "watched"))
    backend = (WORKERS / "tvm_backend" / "pool.py").read_text()
    told = {*re.findall(r'"([a-z]+)/[a-z]+"', loop), *re.findall(r'spent\["([a-z]+)"\]', backend)}
    assert told == set(words.SPENT)
    assert told <= set(words.ABOUT)


def test_a_target_says_what_computes_side_by_side_on_it() -> None:
    assert words.units({"kind": "llvm"}) == "threads"
    assert words.units({"kind": "cuda"}) == "multiprocessors"
    assert words.target_words({"kind": "llvm", "mattr": ["+avx"]}) == "kind=llvm mattr=['+avx']"
