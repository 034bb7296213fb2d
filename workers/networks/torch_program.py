"""What stands in a torch.export file, read as text: weights' descriptions, the graph, and the pickle of example inputs.

torch.export.load runs code of all of them: a pickled weight (weights_only=False), expressions of open sizes (sympy's parser
evaluates them), guards, operators looked up in torch by name, types of inputs imported by name, names pasted into the code
that it makes. None of these may be there.
"""

from __future__ import annotations

import io
import json
import pickletools
import re
import zipfile
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from workers.networks.errors import NetworkError

AGAIN = "export it again with torch.export.save, or export the network to ONNX"
WHOLE = f"upload it again; if that fails, {AGAIN}"
STATIC = "export it without dynamic_shapes, or export the network to ONNX, where sizes may stay open"
RENAMED = "export it with letters, digits and _ in the keys of its inputs and outputs"
SMALLER = "use a smaller network"

_OPERATOR = re.compile(
    # These two stand where a network turns off gradients or mixed precision for a part of itself.
    r"torch\.ops\.(aten|prims)\.(?!(from_file|save)\b)\w+(\.\w+)?|_operator\.getitem"
    r"|torch\.ops\.higher_order\.wrap_with_(set_grad_enabled|autocast)",
    re.ASCII,
)
_IDENTIFIER, _DOTTED = re.compile(r"\w*", re.ASCII), re.compile(r"[\w.]+", re.ASCII)
_NAMES = frozenset({"name", "as_name", "user_input_name"})
_DOTTED_NAMES = frozenset(
    {"parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "class_fqn", "fqn"}
)
_KEYED = ("builtins.dict", "collections.OrderedDict")
_CONTAINERS = (None, "builtins.tuple", "builtins.list", *_KEYED)
_PICKLED_TENSOR = re.compile(r"torch \w+Storage|torch\._utils _rebuild_(tensor_v2|parameter)|collections OrderedDict")
_SAMPLE_MEMBER = re.compile(
    r"[^/]+/(data\.pkl|data/\d+|version|byteorder|\.format_version|\.storage_alignment|\.data/serialization_id)"
)
_CALLING = frozenset({"STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4"})


def check_tensors(listing: str, content: bytes, sizes: Mapping[str, int], elements: int) -> None:
    """The tensors that the member `listing` describes: raw bytes beside it, of fixed size, on the CPU.

    `sizes` holds the bytes of every member. Raises NetworkError.
    """
    folder = listing.rpartition("/")[0]
    for name, meta in _table(_json(listing, content).get("config"), listing).items():
        _check_name(name, _DOTTED)
        _check_tensor(name, _table(meta, name), folder, sizes, elements)


def _check_tensor(name: str, meta: dict[str, Any], folder: str, sizes: Mapping[str, int], limit: int) -> None:
    if meta.get("use_pickle") is not False:
        raise NetworkError(name, "this tensor is stored as a pickled object, which runs code when loaded", AGAIN)
    member = f"{folder}/{meta.get('path_name')}"
    if not re.fullmatch(rf"{folder}/(weight|tensor)_\d+", member) or member not in sizes:
        raise NetworkError(name, f"its bytes should be in {member}, and are not", WHOLE)
    shape = _table(meta.get("tensor_meta"), name)
    elements = _elements(name, shape)
    if elements > limit:
        raise NetworkError(name, f"it has {elements} elements, {limit} are allowed", SMALLER)
    if elements and not sizes[member]:
        raise NetworkError(name, f"its {elements} elements are not in the file", "export it with real weights")
    device = _table(shape.get("device"), name).get("type")
    if device != "cpu":
        raise NetworkError(
            name, f"this tensor is on device {device}", "move the network to the CPU and export it again"
        )


def _elements(name: str, shape: dict[str, Any]) -> int:
    sizes = shape.get("sizes")
    whole = [size.get("as_int") for size in sizes if isinstance(size, dict)] if isinstance(sizes, list) else [None]
    if not all(isinstance(size, int) and size >= 0 for size in whole):
        raise NetworkError(name, "a size of this tensor is open or no whole number", STATIC)
    return prod(size for size in whole if size is not None)


def check_graph(name: str, content: bytes, elements: int) -> None:
    """The graph: PyTorch's own operators on tensors of fixed size. Raises NetworkError."""
    graph = _json(name, content)
    if graph.get("guards_code"):
        raise NetworkError("guards_code", "the file brings conditions written as Python code", STATIC)
    for key, found in _pairs(graph):
        _check_names(key, found)
        if key in ("as_expr", "expr_str") and found is not None:
            raise NetworkError("dynamic shapes", "sizes are left open, as expressions that run when loaded", STATIC)
        if key in ("target", "as_operator") and not (isinstance(found, str) and _OPERATOR.fullmatch(found)):
            raise NetworkError(found, "this operator is not one of PyTorch's own (torch.ops.aten)", AGAIN)
        if key == "sizes" and isinstance(found, list):
            _check_sizes(found, elements)
        if key in ("in_spec", "out_spec") and isinstance(found, str):
            _check_containers(key, found)


def _check_names(key: str, found: Any) -> None:
    if key in _NAMES and isinstance(found, str):
        _check_name(found, _IDENTIFIER)
    elif key in _DOTTED_NAMES and found:  # the whole network has no name
        _check_name(found, _DOTTED)
    elif key == "forward_arg_names" and found is not None:
        for name in found if isinstance(found, list) else [found]:
            _check_name(name, _IDENTIFIER)


def _check_name(name: Any, form: re.Pattern[str]) -> None:
    if not (isinstance(name, str) and form.fullmatch(name)):
        raise NetworkError(name, "names become Python code when loaded, and this is no identifier", AGAIN)


def _check_sizes(sizes: list[Any], limit: int) -> None:
    whole = [size.get("as_int") for size in sizes if isinstance(size, dict)]
    elements = prod(size for size in whole if isinstance(size, int))
    if elements > limit:
        raise NetworkError(elements, f"a tensor has so many elements, {limit} are allowed", SMALLER)


def _check_containers(name: str, spec: str) -> None:
    for node in _tables(_parsed(name, spec)):
        kind, context = node.get("type"), node.get("context")
        if kind not in _CONTAINERS:
            raise NetworkError(
                kind,
                "the network takes or gives objects of this type",
                "export it with tensors, tuples, lists or dictionaries as inputs and outputs",
            )
        if kind in _KEYED and context is not None:
            _check_keys(name, context)
        elif context not in (None, "null", "[]"):
            raise NetworkError(context, f"a {kind} of inputs or outputs brings this, which torch never writes", AGAIN)


def _check_keys(name: str, context: Any) -> None:
    keys = _parsed(name, context) if isinstance(context, str) else None
    for key in keys if isinstance(keys, list) else [context]:
        if not (isinstance(key, str) and _IDENTIFIER.fullmatch(key)):
            raise NetworkError(
                key, "keys of dictionaries become Python code when loaded, and this is no identifier", RENAMED
            )


def check_sample(name: str, content: bytes) -> None:
    """Example inputs, as torch.save writes them: tensors and no more. They are not loaded; whatever else is among them
    says what the file is. Raises NetworkError, or zipfile's and pickletools' errors for what is damaged.
    """
    if not content:
        return
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise NetworkError(name, "these example inputs are not what torch.save writes", AGAIN)
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        for member in inner.infolist():
            shown = f"{name}/{member.orig_filename}"
            if not _SAMPLE_MEMBER.fullmatch(member.orig_filename):
                raise NetworkError(shown, "torch.save writes no such member", AGAIN)
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > len(content):
                raise NetworkError(shown, "this member is compressed, and torch.save compresses nothing", AGAIN)
            if member.orig_filename.endswith("/data.pkl"):
                _check_pickle(name, inner.read(member))


def _check_pickle(name: str, content: bytes) -> None:
    for opcode, argument, _ in pickletools.genops(content):
        named = opcode.name == "GLOBAL" and not _PICKLED_TENSOR.fullmatch(str(argument))
        if named or opcode.name in _CALLING:
            what = str(argument).replace(" ", ".") if argument is not None else opcode.name
            raise NetworkError(name, f"beside tensors it pickles {what}, which runs code when loaded", AGAIN)


def _json(name: str, content: bytes) -> dict[str, Any]:
    return _table(_parsed(name, content), name)


def _parsed(name: str, content: str | bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NetworkError(name, f"this is not the JSON it should be ({error})", WHOLE) from error


def _table(found: Any, name: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise NetworkError(name, "there should be a table of names here", WHOLE)
    return found


def _pairs(content: Any) -> Iterator[tuple[str, Any]]:
    """Every name with what it names, at any depth."""
    for table in _tables(content):
        yield from table.items()


def _tables(content: Any) -> Iterator[dict[str, Any]]:
    waiting = [content]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)
