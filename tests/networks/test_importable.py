"""Which operators can be taken, told without TVM."""

from __future__ import annotations

import onnx
import pytest

from workers.networks.clean import BROUGHT
from workers.networks.errors import NetworkError
from workers.networks.importable import check_operators, unsupported
from workers.networks.opsets import WRITTEN_OUT


def test_what_the_simplifier_may_bring_in_can_be_imported_and_what_is_written_out_cannot() -> None:
    assert unsupported(BROUGHT) == []
    # com.microsoft's Attention has a converter, which would take ONNX's for it.
    assert unsupported(WRITTEN_OUT) == sorted(WRITTEN_OUT - {"Attention"})


def test_every_standard_operator_that_is_defined_by_others_is_imported_or_written_out() -> None:
    """But for random numbers and sequences."""
    latest = {schema.name: schema for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    others = {"Bernoulli", "SequenceMap"}
    defined = {name for name, one in latest.items() if one.has_function or one.has_context_dependent_function}
    assert set(unsupported(defined)) - WRITTEN_OUT == others


@pytest.mark.parametrize("kind", ["EmbedLayerNormalization", "MaxRoiPool"])
def test_what_nobody_can_bound_is_refused(kind: str) -> None:
    with pytest.raises(NetworkError, match=f"{kind}: TVM looks up in what these read"):
        check_operators(["Conv", kind])
