"""What the words of a command line mean."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from workers.headless.arguments import input_shapes, pair, spec_of
from workers.headless.errors import UserMistake
from workers.headless.profile import Profile
from workers.headless.tune import add_arguments


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(["net.onnx", "--out", "there", *words])


def test_a_gain_is_a_percentage() -> None:
    assert parsed("--min-gain", "1%").min_gain == 0.01
    assert parsed("--min-gain", "0.5 %").min_gain == 0.005
    assert parsed().min_gain is None


@pytest.mark.parametrize("text", ["1", "0.01", "0%", "100%", "nan%", "one%", "1%%", "%", ""])
def test_a_gain_without_sense_is_explained(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--min-gain", text)
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"--min-gain: {text!r} must be above 0% and under 100%" in last


@pytest.mark.parametrize("option", ["--minutes", "--target-ms"])
@pytest.mark.parametrize("text", ["inf", "-inf", "nan", "1e999", "1e308", "0", "-1"])
def test_a_limit_that_is_none_is_refused_before_anything_is_read(option: str, text: str, tmp_path: Path) -> None:
    said = f"{option} {float(text)} must be a finite number greater than 0; give another one"
    with pytest.raises(UserMistake, match=re.escape(said)):
        spec_of(parsed(f"{option}={text}"), tmp_path, Profile())


def test_parts_that_nobody_would_ask_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match="--method chameleon: explorer 'metaschedule' brings its own cost model"):
        spec_of(parsed("--method", "chameleon", "--part", "explorer=metaschedule"), tmp_path, Profile())


@pytest.mark.parametrize("text", ["1,3,4,4", "=1,3", "x="])
def test_what_is_no_name_with_a_value_is_explained(text: str) -> None:
    assert pair("x=1,3", "--shape") == ("x", "1,3")
    with pytest.raises(UserMistake, match=re.escape(f"--shape {text!r} must look like NAME=VALUE")):
        pair(text, "--shape")


def port(name: str, *shape: int | str | None) -> dict[str, Any]:
    return {"name": name, "shape": list(shape)}


def test_sizes_given_come_before_the_networks_own() -> None:
    inspection = {"inputs": [port("x", "batch", 3), port("y", 4)]}
    assert input_shapes(inspection, {"x": "8,3"}) == {"x": [8, 3], "y": [4]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"input x has dynamic dimensions \['batch', 3\]: give its sizes with --shape x="),
        ({"x": "8,b"}, "--shape x: sizes must be whole numbers"),
        ({"x": "0,3"}, "--shape x: sizes must be whole numbers from 1 on"),
        ({"x": "8"}, "--shape x: the input has 2 dimensions, not 1; give a size for each"),
        ({"x": "8,3", "z": "1"}, "--shape z: the network has no such input; it has x, y"),
    ],
)
def test_sizes_that_make_no_sense_are_explained(given: dict[str, str], said: str) -> None:
    inspection = {"inputs": [port("x", "batch", 3), port("y", 4)]}
    with pytest.raises(UserMistake, match=said):
        input_shapes(inspection, given)
