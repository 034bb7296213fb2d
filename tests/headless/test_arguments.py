"""What the words of a command line mean."""

from __future__ import annotations

import argparse

import pytest

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
