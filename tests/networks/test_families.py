"""Networks of other families compute the same when they are cleaned, by operators whose channels can be last."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests import families
from workers.networks.clean import cleaned
from workers.networks.graph import operator_types

LEFT = {"ConvTranspose", "InstanceNormalization", "LeakyRelu", "BatchNormalization", "LSTM"}
"""What TVM would compute in the layout of the file, or not at all."""


@pytest.mark.parametrize("name", list(families.FAMILIES))
def test_families_are_cleaned_to_what_has_its_channels_last(name: str, tmp_path: Path) -> None:
    path = families.write(tmp_path, name)
    shape = list(families.FAMILIES[name][1])
    model = cleaned(path, {"x": shape})
    assert not operator_types(model) & LEFT
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    before, after = (
        onnxruntime.InferenceSession(given, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for given in (str(path), model.SerializeToString())
    )
    assert np.abs(before - after).max() <= 1e-5 * np.abs(before).max()
