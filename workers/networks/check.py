"""Is this file a network that may be worked with? Called in a disposable process, and careful all the same."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import onnx
from onnx import ModelProto, inliner

from workers.networks.contributed import write_out_contributed
from workers.networks.early import set_aside
from workers.networks.errors import NetworkError, one_line, shown
from workers.networks.limits import DEFAULT, Limits
from workers.networks.order import put_in_order
from workers.networks.shapes import skeleton, tensor_shapes
from workers.networks.structure import STANDARD, check_structure, opset
from workers.networks.subgraphs import every
from workers.networks.upload import check_file
from workers.networks.wire import BROKEN, Walk

EXTENSION = ".onnx"


def load(path: str | Path, limits: Limits = DEFAULT) -> ModelProto:
    """The checked network, ONNX Runtime's own operators written by ONNX's (`contributed`); raises what `checked` does."""
    model = checked(path, limits)
    write_out_contributed(model)
    return model


def checked(path: str | Path, limits: Limits = DEFAULT) -> ModelProto:
    """The network as ONNX Runtime runs it, its local functions written out; raises NetworkError with one clear line where the
    file at `path` is not one within `limits`.

    The order matters: each step is safe only because of the one before.

    Bytes are walked before they are parsed, names and order are checked before onnx's checker, and the shapes are
    bounded before anyone allocates a tensor. No other file is read.
    """
    content = _read(Path(path), limits)
    try:
        model = ModelProto.FromString(content)
    except Exception as error:  # DecodeError lives in a private place of protobuf and differs by implementation
        raise NetworkError("the file", f"this is not an ONNX file ({error})", BROKEN) from error
    del content
    _name_standard_alike(model)
    put_in_order(model.graph)
    check_structure(model, limits)
    bare = set_aside(_with_output_shapes(skeleton(model)))
    try:
        onnx.checker.check_model(bare)
    except Exception as error:
        # ValidationError, and others from the C++ inside; their words are in the log, as the cause.
        raise _unknown(bare) or _refused(str(error)) from error
    tensor_shapes(model, limits)
    # Whoever judges a network looks at its operators, and these may be within functions.
    return inliner.inline_local_functions(model) if model.functions else model


def _name_standard_alike(model: ModelProto) -> None:
    """The domain of ONNX's own operators has two names, of which onnx's checker takes the empty one alone."""
    plain, other = STANDARD
    for holder in (model, *model.functions):
        named = {one.domain for one in holder.opset_import}
        for place in reversed(range(len(holder.opset_import))):
            if holder.opset_import[place].domain == other and plain in named:
                del holder.opset_import[place]
            elif holder.opset_import[place].domain == other:
                holder.opset_import[place].domain = plain
    for function in model.functions:
        function.domain = plain if function.domain == other else function.domain
    for holder in (model.graph, *model.functions):
        for node in every(holder.node):
            node.domain = plain if node.domain == other else node.domain


def _unknown(model: ModelProto) -> NetworkError | None:
    """Of the first operator that ONNX does not have in the version that the network names."""
    version = opset(model)
    local = {(function.domain, function.name) for function in model.functions}
    for node in every(model.graph.node):
        if node.domain in STANDARD and (node.domain, node.op_type) not in local:
            if not _has(node.op_type, version):
                named = (
                    f"Node {shown(node.name)}" if node.name else f"The node that makes {shown([*node.output, '?'][0])}"
                )
                reason = f"it uses {shown(node.op_type)}, which is not an ONNX operator of opset {version}"
                return NetworkError(named, reason, _instead(node.op_type, version))
    return None


def _instead(operator: str, version: int) -> str:
    schemas = [one for one in onnx.defs.get_all_schemas_with_history() if (one.name, one.domain) == (operator, "")]
    if newer := [one.since_version for one in schemas if not one.deprecated and one.since_version > version]:
        return f"export the network with opset {min(newer)} or newer"
    if gone := [one.since_version for one in schemas if one.deprecated]:
        return f"export the network with opset {min(gone) - 1} or older"
    return "replace it by standard ONNX operators in the network, and export it again"


def _has(operator: str, version: int) -> bool:
    try:
        return not onnx.defs.get_schema(operator, version, "").deprecated
    except onnx.defs.SchemaError:
        return False


def _refused(told: str) -> NetworkError:
    """The checker's first sentence, and of which operator it is."""
    node = re.search(r"Name: (.*?) OpType: (\S+)", told)
    named = f"Node {shown(node[1])} ({shown(node[2])})" if node else "the network"
    sentence = one_line(told.partition("==>")[0])
    return NetworkError(named, f"the ONNX checker refuses it: {sentence}", "correct the network and export it again")


def _with_output_shapes(bare: ModelProto) -> ModelProto:
    """The checker wants a shape on every output; exporters leave it out, and inference finds it."""
    for value in bare.graph.output:
        value.type.tensor_type.shape.SetInParent()
    return bare


def _read(path: Path, limits: Limits) -> bytes:
    if not check_file(path, EXTENSION, limits.file_bytes):
        raise NetworkError("the file", "it is empty", BROKEN)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
        Walk(buffer, limits).run()
        return buffer[:]
