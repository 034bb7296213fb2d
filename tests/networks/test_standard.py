"""What ONNX's own tests of its operators compute, by ONNX Runtime before and after the passes here."""

from __future__ import annotations

import warnings
from collections import Counter
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

from tests.networks.test_clean import failing
from workers.networks import pads
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.graph import attribute, operator_types
from workers.networks.importable import check_operators
from workers.networks.inspect import inspect_model
from workers.networks.precision import INTEGER_OPERATORS

AT_LEAST = 1000
"""Of 1,884 tests of onnx 1.23: ONNX Runtime does not take 532 of them, and others are refused here."""
NEWEST_IR = 11


def session(model: ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def agree(some: list[Any], others: list[Any]) -> bool:
    def alike(a: Any, b: Any) -> bool:
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        close = a.dtype.kind in "fc" and np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True)
        return close or np.array_equal(a, b)

    return all(alike(a, b) for a, b in zip(some, others, strict=True))


def tried(case: Any) -> str:
    """What became of one: 'taken', 'refused' by us or by ONNX Runtime ('lacking'), or its name where it is wrong."""
    model = deepcopy(case.model)
    model.ir_version = min(model.ir_version, NEWEST_IR)
    try:
        before = session(model)
        given = [
            {i.name: array for i, array in zip(model.graph.input, arrays[0], strict=False)} for arrays in case.data_sets
        ]
        wanted = [before.run(None, inputs) for inputs in given]
    except Exception:  # ONNX Runtime's own, of many kinds
        return "lacking"
    try:
        inspect_model(model)
        cleaned, _ = clean(model, {}, failing)
        check_operators(operator_types(cleaned) - INTEGER_OPERATORS)
    except NetworkError:
        return "refused"
    after = session(cleaned)
    for inputs, by_runtime, (_, by_standard) in zip(given, wanted, case.data_sets, strict=True):
        found = after.run(None, {value.name: inputs[value.name] for value in after.get_inputs()})
        if not agree(found, by_runtime) and not agree(found, by_standard):
            return f"wrong: {case.name}"
    return "taken"


@cache
def cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, in the making of infinities
        from onnx.backend.test.case.node import collect_testcases

        return [case for case in collect_testcases(None) if case.model is not None]


def test_what_the_standard_tests_is_computed_as_before_when_it_is_cleaned() -> None:
    became = Counter(tried(case) for case in cases())
    assert not [what for what in became if what.startswith("wrong")]
    assert became["taken"] >= AT_LEAST, became


@pytest.mark.mutation
def test_a_pass_that_computes_otherwise_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = (case for case in cases() if case.name == "test_averagepool_2d_same_lower")
    assert tried(one) == "taken"
    monkeypatch.setattr(
        pads,
        "attribute",
        lambda node, name, default=None: b"SAME_UPPER" if name == "auto_pad" else attribute(node, name, default),
    )
    assert tried(one) == "wrong: test_averagepool_2d_same_lower"
