"""A torch.export file through the real child, under its terms."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.kernel import needs
from workers.headless.ask import MemoryJournal, ask
from workers.headless.errors import UserMistake
from workers.headless.torch_export import as_onnx
from workers.sandbox import protection
from workers.supervision import supervise
from workers.supervision.terms import terms_of

pytestmark = [pytest.mark.tvm, needs("scopes")]
SHAPE = (1, 3, 16, 16)


def _network() -> Any:
    import torch

    nn = torch.nn

    class Small(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.linear = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 4)
            self.register_buffer("offset", torch.arange(4.0), persistent=False)
            self.tied = self.linear.weight

        def forward(self, x: Any) -> Any:
            return self.linear(torch.relu(self.norm(self.conv(x))).mean((2, 3))) + self.offset

    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Small().eval()


def _exported(path: Path, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Writes the file; an input and what PyTorch makes of it."""
    import torch

    network, found = _network(), np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(
            torch.export.export(network, (torch.zeros(2, *SHAPE[1:]) if options else torch.zeros(SHAPE),), **options),
            path,
        )
    with torch.no_grad():
        return found, network(torch.from_numpy(found)).numpy()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, np.ndarray]:
    path = tmp_path_factory.mktemp("saved") / "small.pt2"
    return path, *_exported(path)


@pytest.fixture(scope="module")
def converted(
    saved: tuple[Path, np.ndarray, np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, bool]:
    """The file as ONNX, alone in its directory, and whether the process that asked for it has loaded torch."""
    program = (
        "import json, sys; from pathlib import Path; from workers.headless.torch_export import as_onnx; "
        "made = as_onnx(Path(sys.argv[1]), Path(sys.argv[2]), allowed=True); "
        "import workers.headless.tune; print(json.dumps([str(made), 'torch' in sys.modules]))"
    )
    argv = [sys.executable, "-c", program, str(saved[0]), str(tmp_path_factory.mktemp("converted"))]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=True)
    made, loaded = json.loads(done.stdout)
    return Path(made), loaded


def test_a_convolution_network_computes_the_same_after_the_conversion(
    saved: tuple[Path, np.ndarray, np.ndarray], converted: tuple[Path, bool]
) -> None:
    import onnxruntime

    path, given, expected = saved
    made, _ = converted
    session = onnxruntime.InferenceSession(made)
    assert [port.shape for port in session.get_inputs()] == [list(SHAPE)]
    found = session.run(None, {session.get_inputs()[0].name: given})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert {node.op_type for node in onnx.load(made).graph.node} >= {"Conv", "Gemm"}
    assert sorted(made.parent.iterdir()) == [made]
    inspection = ask({"task": "inspect", "network": str(made)})["inspection"]
    assert inspection["inputs"][0]["shape"] == list(SHAPE)
    assert not inspection["dynamic"]
    before = made.stat().st_mtime_ns
    assert as_onnx(path, made.parent, allowed=True) == made
    assert made.stat().st_mtime_ns == before


def test_a_network_with_named_inputs_that_turns_gradients_and_mixed_precision_off_is_converted(tmp_path: Path) -> None:
    import torch

    class Turned(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleDict({"in_0": torch.nn.Linear(4, 4)})

        def forward(self, x: Any, *, more: Any) -> Any:
            with torch.no_grad():
                turned = more["0"].cos()
            with torch.autocast("cpu", enabled=False):
                return {"out": self.layers["in_0"](self.layers["in_0"](x)) * turned.float()}

    one, path = torch.ones(1, 4), tmp_path / "turned.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(Turned().eval(), (one,), {"more": {"0": one}}), path)
    with zipfile.ZipFile(path) as archive:
        assert b"wrap_with_set_grad_enabled" in archive.read("turned/models/model.json")
        assert b"wrap_with_autocast" in archive.read("turned/models/model.json")
    assert {node.op_type for node in onnx.load(as_onnx(path, tmp_path, allowed=True)).graph.node} >= {"Gemm", "Cos"}


def test_a_file_that_was_not_allowed_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "network.pt2"
    path.write_bytes(b"anything")
    with pytest.raises(UserMistake, match="not allowed"):
        ask({"task": "convert", "source": str(path), "allowed": False})
    with pytest.raises(UserMistake, match="--allow-torch-export"):
        as_onnx(path, tmp_path, allowed=False)


def test_open_sizes_are_refused_with_what_to_do(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "dynamic.pt2"
    _exported(path, dynamic_shapes=({0: torch.export.Dim("batch")},))
    with pytest.raises(UserMistake, match="dynamic_shapes"):
        ask({"task": "convert", "source": str(path), "allowed": True})


LOAD = """
import json, os, sys
from workers.messages.channel import ControlReader, EventWriter
order = ControlReader().order()
import torch
try:
    torch.export.load(order["source"])
finally:
    found = json.load(open(os.path.join(order["work_dir"], "found")))
    EventWriter.from_environment().emit({"kind": "finished", "clock": 0.0, "reason": "done", "found": found})
"""
RUNS = """
import json, os, socket
found = {"env": sorted(os.environ)}
for name, path in %r.items():
    try:
        open(path, "w" if name.startswith("write") else "r").close()
        found[name] = True
    except OSError:
        found[name] = False
try:
    socket.create_connection(("127.0.0.1", %d), 1)
    found["connect"] = True
except ConnectionRefusedError:
    found["connect"] = True
except OSError:
    found["connect"] = False
json.dump(found, open(os.path.join(%r, "found"), "w"))
"""


class Runs:
    """Pickled, it is a call of exec."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, (self.code,)


def _hostile(saved: Path, path: Path, code: str) -> None:
    """The network with example inputs that run code when they are loaded."""
    import io

    import torch

    inputs = io.BytesIO()
    torch.save((Runs(code), {}), inputs)
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(path, "w") as copy:
        for entry in archive.infolist():
            sample = entry.filename.endswith("sample_inputs/model.pt")
            copy.writestr(entry.filename, inputs.getvalue() if sample else archive.read(entry))


def test_code_of_a_hostile_file_is_refused_and_reaches_nothing_where_it_is_loaded_all_the_same(
    saved: tuple[Path, np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://hidden")
    monkeypatch.setenv("SECRET_KEY", "hidden")
    work, secret, path = tmp_path / "work", tmp_path / "secret_key", tmp_path / "hostile.pt2"
    work.mkdir(mode=0o700)
    secret.write_text("hidden")
    places = {
        "write inside": str(work / "inside"), "write outside": str(tmp_path / "outside"), "write source": str(path),
        "read secret": str(secret), "read passwd": "/etc/passwd",
    }  # fmt: skip
    _hostile(saved[0], path, RUNS % (places, 9, str(work)))
    order = {"task": "convert", "source": str(path), "allowed": True, "work_dir": str(work)}
    with pytest.raises(UserMistake, match=r"builtins\.exec|__builtin__\.exec"):
        ask(order)
    assert not (work / "found").exists()
    terms = terms_of(order)
    ending = supervise(
        order, MemoryJournal(), argv=(sys.executable, "-c", LOAD), limits=terms.limits, access=terms.access,
        bounds=terms.bounds, deadlines=terms.deadlines, cwd=work,
    )  # fmt: skip
    assert ending.last is not None, ending.log
    found = ending.last["found"]
    assert not {"DATABASE_URL", "SECRET_KEY"} & set(found["env"])
    level = protection.offered().landlock
    if level == 0:
        pytest.skip("this kernel has no Landlock: environment and limits are all that holds")
    reached = {name for name, value in found.items() if value is True}
    assert reached <= {"write inside", "connect"}, reached
    assert "write inside" in reached
    if level >= 4:  # the first version that knows the network
        assert "connect" not in reached
    assert path.stat().st_size > 0


def test_the_process_that_asks_loads_no_torch(converted: tuple[Path, bool]) -> None:
    _, loaded = converted
    assert loaded is False
