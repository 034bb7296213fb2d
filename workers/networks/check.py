"""Is this file a network that may be worked with? Called in a disposable process, and careful all the same."""

from __future__ import annotations

import mmap
from pathlib import Path

import onnx
from onnx import ModelProto

from workers.networks.errors import NetworkError
from workers.networks.limits import DEFAULT, Limits
from workers.networks.shapes import skeleton, tensor_shapes
from workers.networks.structure import check_structure
from workers.networks.upload import check_file
from workers.networks.wire import BROKEN, Walk

EXTENSION = ".onnx"


def check(path: str | Path, limits: Limits = DEFAULT) -> None:
    """Raises NetworkError with one clear line where the file at `path` is not a network within `limits`."""
    load(path, limits)


def load(path: str | Path, limits: Limits = DEFAULT) -> ModelProto:
    """The checked network. The order matters: each step is safe only because of the one before.

    Bytes are walked before they are parsed, names and order are checked before onnx's checker, and the shapes are
    bounded before anyone allocates a tensor. No other file is read.
    """
    content = _read(Path(path), limits)
    try:
        model = ModelProto.FromString(content)
    except Exception as error:  # DecodeError lives in a private place of protobuf and differs by implementation
        raise NetworkError(Path(path).name, f"this is not an ONNX file ({error})", BROKEN) from error
    del content
    check_structure(model, limits)
    try:
        onnx.checker.check_model(_with_output_shapes(skeleton(model)))
    except Exception as error:  # ValidationError, and others from the C++ inside
        raise NetworkError(
            Path(path).name, f"the ONNX checker refuses it: {error}", "correct the network and export it again"
        ) from error
    tensor_shapes(model, limits)
    return model


def _with_output_shapes(bare: ModelProto) -> ModelProto:
    """The checker wants a shape on every output; exporters leave it out, and inference finds it."""
    for value in bare.graph.output:
        value.type.tensor_type.shape.SetInParent()
    return bare


def _read(path: Path, limits: Limits) -> bytes:
    if not check_file(path, EXTENSION, limits.file_bytes):
        raise NetworkError(path.name, "the file is empty", BROKEN)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
        Walk(buffer, limits).run()
        return buffer[:]
