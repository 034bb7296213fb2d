"""A run asked for once more: as a command without the web, and as a new run with the same settings."""

from __future__ import annotations

import argparse
import html
import re
import shlex

import pytest
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network, Target
from apps.dashboard.repeated import OPTIONS, command
from apps.tuning import services
from apps.tuning.models import TuningRun
from tests.apps.rows import Site
from workers.headless.arguments import check_method, input_shapes, pair
from workers.headless.tune import add_arguments
from workers.messages.spec import Budget

EVERYTHING = {
    "method": "dynatune",
    "parts": {"scheduler": "round_robin", "cost_model": "random_forest"},
    "budget": Budget(seconds=90.0, trials=4000, target_latency=0.00278, min_gain=0.005),
    "layout": "NCHW",
    "operators": "compute",
    "seed": 7,
}


def parsed(text: str) -> argparse.Namespace:
    """As a shell and the command itself take it."""
    program, name, *words = shlex.split(text)
    assert (program, name) == ("manage.py", "tune")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def test_the_command_means_what_the_run_was_asked_for(site: Site) -> None:
    run = site.run(**EVERYTHING)
    told = parsed(command(run))
    assert (told.network, told.out, told.allow_torch_export) == ("./squeezenet.onnx", "squeezenet", False)
    assert (told.method, dict(pair(part, "--part") for part in told.part)) == (run.method, run.parts)
    check_method(told.method, run.parts)
    limits = Budget(60 * told.minutes, told.trials, told.target_ms / 1e3, told.min_gain)
    assert limits == run.budget
    assert (told.layout, told.operators, told.seed) == (run.layout, run.operators_asked, run.seed)
    assert (told.shape, told.device, told.records) == ([], None, [])


@pytest.mark.parametrize("limit", [{"seconds": 600.0}, {"trials": 3}, {"target_latency": 1e-3}, {"min_gain": 0.01}])
def test_a_limit_that_the_run_has_not_is_none_of_the_command(site: Site, limit: dict[str, float]) -> None:
    told = vars(parsed(command(site.run(budget=Budget(**limit)))))
    assert [name for name in OPTIONS.values() if told[name.replace("-", "_")] is not None] == [
        {"seconds": "minutes", "trials": "trials", "target_latency": "target-ms", "min_gain": "min-gain"}[name]
        for name in limit
    ]


def test_the_command_has_the_sizes_that_the_file_leaves_open(site: Site) -> None:
    ports = [{"name": "input; ids", "shape": [None, 4]}, {"name": "mask", "shape": [1, 4]}]
    inspection = {"inputs": ports, "dynamic": [{"input": "input; ids", "axis": 0, "symbol": None}]}
    shapes = {"input; ids": [8, 4], "mask": [1, 4]}
    Network.objects.update(inspection=inspection, shapes=shapes)
    site.network.refresh_from_db()
    told = parsed(command(site.run()))
    assert len(told.shape) == 1
    assert input_shapes(inspection, dict(pair(text, "--shape") for text in told.shape)) == shapes


@pytest.mark.parametrize("file", ["-x.onnx", "a $(name) 'quoted'.onnx", "net.pt2"])
def test_the_command_names_the_file_as_it_was_uploaded(site: Site, file: str) -> None:
    Network.objects.update(file_name=file, source="c" * 64 if file.endswith(".pt2") else "")
    site.network.refresh_from_db()
    told = parsed(command(site.run()))
    assert (told.network, told.allow_torch_export) == (f"./{file}", file.endswith(".pt2"))


def page_of(client: Client, run: TuningRun) -> str:
    return html.unescape(client.get(reverse("run", args=[run.pk])).content.decode())


def test_the_page_has_the_command_and_leaves_a_device_to_the_user(site: Site, ada: Client) -> None:
    run = site.run()
    page = page_of(ada, run)
    assert f">{command(run)}</pre>" in page
    assert "It starts from nothing" in page
    assert "--device" not in page
    Target.objects.update(kind="device", host="10.0.0.7", port=9190, key="k" * 32)
    page = page_of(ada, run)
    assert 'for a machine add <span class="mono">--device HOST:PORT --device-key FILE</span>' in page
    assert "10.0.0.7" not in command(TuningRun.objects.get())


def test_a_run_that_ended_too_early_is_started_again_with_its_settings(site: Site, ada: Client) -> None:
    run = site.run(**EVERYTHING, reuse=False)
    assert "Start again" not in page_of(ada, run)
    services.request(run, site.ada, "stop")
    page = page_of(ada, run)
    assert "Tune further" not in page
    again = re.search(r'id="afresh" href="([^"]+)"[^>]*>Start again with these settings<', page)
    assert again
    form = ada.get(again[1]).content.decode()
    filled = {name: re.search(rf'name="{name}" value="([^"]*)"', form) for name in ("minutes", "trials", "latency")}
    assert {name: value and value[1] for name, value in filled.items()} == {
        "minutes": "1.5", "trials": "4000", "latency": "2.78",
    }  # fmt: skip
    assert re.search(r'name="seed" value="7"', form)
    assert re.search(r'value="dynatune" checked', form)
    for chosen in ("round_robin", "random_forest", "NCHW", "compute"):
        assert f'<option value="{chosen}" selected>' in form
    (reuse,) = re.findall(r'<input type="checkbox" name="reuse"[^>]*>', form)
    assert "checked" not in reuse
    assert 'name="reuse" id="id_reuse" checked' in ada.get(reverse("new-run")).content.decode()


def test_a_run_that_failed_before_it_measured_is_started_again_too(site: Site, ada: Client) -> None:
    run, held, _ = site.claimed()
    services.conclude(held, "failed", last={"kind": "failed", "reason": "odd", "next_step": "look"})
    page = page_of(ada, run)
    assert 'id="afresh"' in page
    Target.objects.update(state="new")
    page = page_of(ada, run)
    assert "See its machine to start again</a>" in page
    assert "It has to be measured first, for which ask who runs this site: New run offers others" in page
    Network.objects.update(shapes={"x": [2, 3, 8, 8]})
    assert "Choose these sizes again to start again</a>" in page_of(ada, run)
