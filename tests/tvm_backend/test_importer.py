"""The ways to import a network, each tried only when the one before does not hold, and what is kept of the import."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests import zoo
from tests.tvm_backend.local import local_backend, target
from tests.tvm_backend.test_winograd import network

pytestmark = pytest.mark.tvm

WINOGRAD = "NHWC with Winograd's minimal filtering"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> onnx.ModelProto:
    """Two convolutions that are worth transforming."""
    path = network(tmp_path_factory.mktemp("network") / "network.onnx", 64, (28, 28), [1, 1, 1, 1])
    return onnx.load(str(path))


def imported(model: onnx.ModelProto, balance: float | None = 4.0, layout: str = "auto") -> Any:
    target()
    import tvm

    from workers.tvm_backend.importer import import_network

    return import_network(model, {"x": [1, 64, 28, 28]}, tvm.target.Target(target()), layout, balance)


def called(found: Any) -> list[str]:
    from workers.tvm_backend.importer import calls

    return calls(found.mod)


def failing(text: str) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise RuntimeError(f"Traceback:\n  frames\n{text}")

    return fail


def test_the_first_way_that_holds_is_taken_without_a_word_about_others(model: onnx.ModelProto) -> None:
    found = imported(model)
    assert found.layout == "NHWC"
    assert [name for name in called(found) if "winograd" in name]
    assert found.notes == ("convolutions computed by Winograd's minimal filtering: 2",)
    assert not imported(model, balance=None).notes
    assert imported(model, layout="NCHW").layout == "NCHW"
    assert not imported(model, layout="NCHW").notes


@pytest.mark.parametrize("where", ["transforming", "lowering"])
def test_without_winograd_the_network_stays_in_nhwc(
    model: onnx.ModelProto, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = called(imported(model, balance=None))
    from workers.tvm_backend import importer, winograd

    lower = importer._lower

    def picky(mod: Any, target: Any) -> Any:
        if any("winograd" in variable.name_hint for variable in mod.get_global_vars()):
            failing("no tiles")()
        return lower(mod, target)

    if where == "transforming":
        monkeypatch.setattr(winograd, "transformed", failing("no tiles"))
    else:
        monkeypatch.setattr(importer, "_lower", picky)
    found = imported(model)
    assert found.layout == "NHWC"
    assert called(found) == plain
    assert found.notes == (f"{WINOGRAD} does not hold here (no tiles): imported in NHWC",)


def test_the_last_way_is_the_layout_of_the_file(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = called(imported(model, layout="NCHW"))
    from workers.tvm_backend import importer

    monkeypatch.setattr(importer.relax.transform, "ConvertLayout", lambda _: failing("no source layout"))
    found = imported(model)
    assert found.layout == "NCHW"
    assert called(found) == plain
    assert found.notes == tuple(
        f"{name} does not hold here (no source layout): imported in NCHW" for name in (WINOGRAD, "NHWC")
    )


def test_each_way_is_tried_once_and_in_order_and_all_are_named_when_none_holds(
    model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import importer

    tried: list[str] = []

    def refusing(mod: Any, target: Any, way: Any) -> Any:
        tried.append(way.name)
        failing(f"reason {len(tried)}")()

    monkeypatch.setattr(importer, "_lowered", refusing)
    with pytest.raises(importer.ImportFailed, match="cannot lower this network") as caught:
        imported(model)
    assert tried == [WINOGRAD, "NHWC", "NCHW"]
    for number, name in enumerate(tried, 1):
        assert f"{name} does not hold here (reason {number})" in str(caught.value)


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_backend_keeps_operators_and_no_weights(zoo_cache: Path, tmp_path: Path) -> None:
    local_backend(zoo.tiny(zoo_cache), tmp_path / "tiny").close()  # TVM and its compiler take their own first
    random = np.random.default_rng(0)
    weights = zoo.constant("w", random.standard_normal((4096, 8192), np.float32))
    large = zoo.model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [1, 4096]}, {"y": [1, 8192]}, [weights])
    path = tmp_path / "large.onnx"
    path.write_bytes(large.SerializeToString())
    size = len(weights.raw_data)
    del large, weights
    gc.collect()
    before = resident()
    backend = local_backend(path, tmp_path / "large")
    try:
        assert [operator.bytes for operator in backend.operators()] == [size + 4 * (4096 + 8192)]
        assert backend.layout == "none"
        assert resident() - before < size / 2
    finally:
        backend.close()
