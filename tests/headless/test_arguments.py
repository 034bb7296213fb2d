"""What the words of a command line mean."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests import zoo
from workers.headless.arguments import check_method, device_of, input_shapes, network_file, pair, spec_of
from workers.headless.ask import ask
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


def test_more_trials_than_anybody_measures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match=r"--trials 10{400} must be 10000000 or fewer; give a smaller number"):
        spec_of(parsed("--trials", "1" + 400 * "0"), tmp_path, Profile())


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


def test_a_key_without_a_device_is_refused() -> None:
    assert device_of(parsed()) is None
    with pytest.raises(UserMistake, match="--device-key there: no device is named; add --device"):
        device_of(parsed("--device-key", "there"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".", "is a directory; name the ONNX file itself"),
        ("/dev/null", "is no file; name the ONNX file itself"),
        ("nowhere.onnx", "No such file or directory; name an ONNX file that can be read"),
        (f"{'x' * 300}.onnx", "File name too long; name an ONNX file that can be read"),
    ],
)
def test_what_is_no_file_is_told_as_what_it_is(name: str, said: str) -> None:
    with pytest.raises(UserMistake, match=re.escape(said)):
        network_file(name)


def test_a_file_that_may_not_be_read_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "closed.onnx"
    path.touch(mode=0)
    if os.access(path, os.R_OK):
        pytest.skip("nothing is closed to this user")
    with pytest.raises(UserMistake, match="Permission denied; name an ONNX file that can be read"):
        network_file(str(path))


def test_a_link_is_read_under_its_own_name(zoo_cache: Path, tmp_path: Path) -> None:
    """As caches of models have them: what they lead to has no ending. A child may read that, and nothing beside it."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "8f3a").write_bytes(zoo.tiny(zoo_cache).read_bytes())
    (tmp_path / "net.onnx").symlink_to("blobs/8f3a")
    network = network_file(str(tmp_path / "blobs" / ".." / "net.onnx"))
    assert network == tmp_path / "net.onnx"
    assert ask({"task": "inspect", "network": str(network)})["inspection"]["nodes"] > 1


def test_a_part_that_no_run_can_have_is_refused_before_it_begins() -> None:
    with pytest.raises(UserMistake, match="oracle is shown recorded curves, which a run has none of; compare it with"):
        check_method("dynatune", {"scheduler": "oracle"})
