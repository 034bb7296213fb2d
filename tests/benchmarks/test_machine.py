"""Networks as a benchmark opens them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import zoo
from workers.benchmarks.machine import opened
from workers.headless.errors import UserMistake


def test_a_network_whose_inputs_have_open_sizes_is_refused(zoo_cache: Path) -> None:
    assert opened(str(zoo.tiny(zoo_cache))).inputs.keys() == {"x"}
    path = zoo.tiny_residual(zoo_cache)
    said = f"input x has dynamic dimensions ['N', 16, 14, 14]: export {path} with fixed sizes"
    with pytest.raises(UserMistake, match=re.escape(said)):
        opened(str(path))
