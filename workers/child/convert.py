"""A torch.export file becomes an ONNX file, once; everything behind sees only that.

The one place that loads a .pt2 file: what it may do then is bounded by the terms of this task and by nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.child.pulse import Pulse
from workers.messages.channel import ControlReader
from workers.networks.errors import NetworkError
from workers.networks.torch_archive import rewrite

if TYPE_CHECKING:
    from torch.export import ExportedProgram

CAUSE = 2000  # characters: an exporter's error may hold a whole graph
OPSET = 18
"""The newest that TVM's importer and ONNX Runtime read whole and torch's exporter writes without converting."""


def convert_network(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {source, allowed, work_dir}. Tells a result {onnx: path of a file in work_dir}, or fails with the reason."""
    source, work = Path(order["source"]), Path(order["work_dir"])
    if order.get("allowed") is not True:
        raise NetworkError(
            source.name,
            "torch.export files are not allowed here: loading one runs code that is in it",
            "export the network to ONNX",
        )
    pulse.tell("phase", name="checking", text="looking at the archive")
    checked = work / "checked.pt2"
    rewrite(source, checked)
    pulse.tell("phase", name="converting", text="converting torch.export to ONNX")
    made = work / "network.onnx"
    _convert(_loaded(checked, source.name), made, source.name)
    checked.unlink()
    pulse.tell("result", task="convert", onnx=str(made))


def _loaded(path: Path, name: str) -> ExportedProgram:
    # Loaded only for a file that stood the check.
    import torch

    try:
        return torch.export.load(path)
    except Exception as error:  # whatever torch raises for a file that is none
        raise NetworkError(
            name,
            f"torch {torch.__version__} cannot load it ({_cause(error)})",
            "export it again with this version of torch, or export the network to ONNX",
        ) from error


def _convert(program: ExportedProgram, path: Path, name: str) -> None:
    import torch

    try:
        # Without inputs to export with: the program is taken as it is, with the sizes it was exported for.
        converted = torch.onnx.export(program, dynamo=True, external_data=False, opset_version=OPSET, verbose=False)
        assert converted is not None
        converted.save(path)
    except Exception as error:
        raise NetworkError(
            name,
            f"torch cannot convert it to ONNX ({_cause(error)})",
            "export the network to ONNX, where torch.onnx.export says more",
        ) from error


def _cause(error: BaseException) -> str:
    """The innermost exception: those around it tell how exporters are debugged."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"[:CAUSE]
