"""What torch.export.save writes passes; everything else is refused in one sentence that names it, before torch is there."""

from __future__ import annotations

import io
import json
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.zoo import tiny
from workers.networks.errors import NetworkError
from workers.networks.torch_archive import DEFAULT, ArchiveLimits, rewrite

META = {
    "dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}], "requires_grad": True, "layout": 7,
    "device": {"type": "cpu", "index": None}, "strides": [{"as_int": 3}, {"as_int": 1}], "storage_offset": {"as_int": 0},
}  # fmt: skip
SPEC = '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null}]}]'


def graph() -> dict[str, Any]:
    node = {"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}]}
    calls = [{"fqn": "", "signature": {"in_spec": SPEC, "out_spec": SPEC}}]
    return {
        "graph_module": {"graph": {"nodes": [node], "tensor_values": {"x": META}}, "module_call_graph": calls},
        "guards_code": [],
    }


def listing(**changes: Any) -> bytes:
    return json.dumps(
        {"config": {"w": {"path_name": "weight_0", "use_pickle": False, "tensor_meta": META, **changes}}}
    ).encode()


def pickled(content: object, name: str = "archive/data.pkl") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content if isinstance(content, bytes) else pickle.dumps(content, protocol=2))
    return file.getvalue()


def members(**changes: bytes | None) -> dict[str, bytes]:
    """The members of a small archive; `changes` by the last part of a name, None takes one away."""
    found: dict[str, bytes | None] = {
        "data/weights/weight_0": bytes(24),
        "data/weights/model_weights_config.json": listing(),
        "data/constants/model_constants_config.json": b'{"config": {}}',
        "models/model.json": json.dumps(graph()).encode(),
        "data/sample_inputs/model.pt": pickled(((), {})),
        "archive_format": b"pt2",
        "archive_version": b"0",
        ".data/version": b"6\n",
        "byteorder": b"little",
        ".data/serialization_id": b"1462313847510076959",
    }
    for name, content in changes.items():
        found[next((known for known in found if known.split("/")[-1].split(".")[0] == name), name)] = content
    return {name: content for name, content in found.items() if content is not None}


def written(folder: Path, content: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    path = folder / "network.pt2"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, member in content.items():
            archive.writestr(f"net/{name}", member)
    return path


def refused(path: Path, limits: ArchiveLimits = DEFAULT) -> str:
    with pytest.raises(NetworkError) as caught:
        rewrite(path, path.parent / "checked.pt2", limits)
    text = str(caught.value)
    assert "\n" not in text
    assert text.isprintable()
    assert caught.value.next_step
    return text


def test_an_archive_as_torch_writes_it_passes_and_loses_what_is_pickled(tmp_path: Path) -> None:
    path = written(tmp_path, {**members(), "extra/notes.txt": b"made on Monday"})
    rewrite(path, tmp_path / "checked.pt2")
    with zipfile.ZipFile(tmp_path / "checked.pt2") as checked:
        assert checked.read("network/data/weights/weight_0") == bytes(24)
        assert checked.read("network/data/sample_inputs/model.pt") == b""
        assert not [name for name in checked.namelist() if "extra" in name]


def test_an_onnx_file_in_disguise_is_told_its_name(tmp_path: Path, zoo_cache: Path) -> None:
    path = tmp_path / "network.pt2"
    path.write_bytes(tiny(zoo_cache).read_bytes())
    assert "must be named .onnx" in refused(path)


@pytest.mark.parametrize("content", [b"", b"hello", bytes(1000), b"PK\x03\x04" * 50, b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "network.pt2"
    path.write_bytes(content)
    assert "export" in refused(path)


def test_another_ending_a_folder_and_a_missing_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder.pt2").mkdir()
    assert "only .pt2" in refused(tmp_path / "network.pth")
    assert "not a file" in refused(tmp_path / "folder.pt2")
    assert "cannot be read" in refused(tmp_path / "none.pt2")


def test_truncated_at_any_offset_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, members())
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        refused(path)


def test_damage_to_any_byte_of_a_weight_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, members(weight_0=b"w" * 24))
    path.write_bytes(path.read_bytes().replace(b"w" * 24, b"w" * 23 + b"v"))
    assert "damaged" in refused(path)


def test_a_bomb_is_refused_unopened(tmp_path: Path) -> None:
    path = written(tmp_path, members(weight_0=bytes(200 << 20)), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    assert "compressed" in refused(path)
    assert not (tmp_path / "checked.pt2").exists()


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """Stored, so that no ratio betrays them."""
    path = written(tmp_path, {**members(weight_0=bytes(65536)), "data/weights/weight_1": b""})
    with zipfile.ZipFile(path) as archive:
        start, first = archive.start_dir, archive.getinfo("net/data/weights/weight_0")
    content = bytearray(path.read_bytes())
    sizes = content.index(b"PK\x01\x02", content.index(b"net/data/weights/weight_1", start) - 46) + 20
    content[sizes : sizes + 8] = struct.pack("<II", first.file_size, first.file_size)
    path.write_bytes(content)
    assert "share bytes" in refused(path)


def test_too_many_members_are_refused_before_they_are_listed(tmp_path: Path) -> None:
    content = {f"data/weights/weight_{i}": b"" for i in range(300)}
    assert "more than 200 members" in refused(written(tmp_path, {**members(), **content}), ArchiveLimits(members=200))


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "net/../../outside",
        "/etc/passwd",
        "net\\..\\outside",
        "C:/outside",
        "net//weight",
        "alone",
        "net/",
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, members())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"")
    assert "name" in refused(path)


def test_links_devices_and_doubles_are_refused(tmp_path: Path) -> None:
    for mode in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR):
        path = written(tmp_path, members())
        with zipfile.ZipFile(path, "a") as archive:
            entry = zipfile.ZipInfo("net/data/weights/weight_7")
            entry.external_attr = (mode | 0o777) << 16
            archive.writestr(entry, b"/etc/passwd")
        assert "link" in refused(path)
    path = written(tmp_path, members())
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("net/data/weights/weight_0", bytes(24))
    assert "twice" in refused(path)
    with zipfile.ZipFile(path := written(tmp_path, members()), "a") as archive:
        archive.writestr("other/byteorder2", b"")
    assert "byteorder2" in refused(path)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("data/constants/custom_obj_0", "pickled"),
        ("data/constants/opaque_obj_0", "pickled"),
        ("data/weights/model.pt", "pickled"),
        ("data.pkl", "pickled"),
        ("data/aotinductor/model/network.so", "compiled code"),
        ("models/second.json", "second.json"),
        ("code/network.py", "network.py"),
    ],
)
def test_members_that_are_code_or_pickles_are_named(tmp_path: Path, name: str, word: str) -> None:
    assert word in refused(written(tmp_path, {**members(), name: b"x"}))


@pytest.mark.parametrize("name", ["model", "model_weights_config", "archive_format", "archive_version"])
def test_missing_members_are_named(tmp_path: Path, name: str) -> None:
    content = members(**{name: None})
    content.pop("models/model.json" if name == "model" else name, None)
    assert "missing" in refused(written(tmp_path, content))


class Calls:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return print, ("run",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_example_inputs_that_call_something_are_named(tmp_path: Path, protocol: int) -> None:
    content = members()
    content["data/sample_inputs/model.pt"] = pickled(pickle.dumps(((Calls(),), {}), protocol=protocol))
    text = refused(written(tmp_path, content))
    assert any(what in text for what in ("builtins.print", "__builtin__.print", "STACK_GLOBAL"))


def test_example_inputs_that_are_no_archive_or_hold_more_are_refused(tmp_path: Path) -> None:
    for inside in (pickle.dumps(Calls()), pickled(b"", "archive/code/network.py"), pickled(b"\x80\x02broken")):
        content = members()
        content["data/sample_inputs/model.pt"] = inside
        assert refused(written(tmp_path, content))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"use_pickle": True}, "pickled"),
        ({"use_pickle": None}, "pickled"),
        ({"path_name": "../../models/model.json"}, "should be in"),
        ({"path_name": "weight_9"}, "should be in"),
        ({"tensor_meta": {**META, "device": {"type": "cuda", "index": 0}}}, "cuda"),
        ({"tensor_meta": {**META, "sizes": [{"as_int": 1 << 40}]}}, "elements"),
        ({"tensor_meta": {**META, "sizes": [{"as_expr": {"expr_str": "s0"}}]}}, "dynamic_shapes"),
        ({"tensor_meta": None}, "table"),
    ],
)
def test_weights_that_are_no_plain_bytes_are_named(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    assert word in refused(written(tmp_path, members(model_weights_config=listing(**changes))))


def test_a_weight_without_its_bytes_is_refused(tmp_path: Path) -> None:
    assert "not in the file" in refused(written(tmp_path, members(weight_0=b"")))


def changed(change: Callable[[dict[str, Any]], Any]) -> bytes:
    found = graph()
    change(found)
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda g: g["graph_module"]["graph"]["nodes"][0].update(target="torch.os.system"), "torch.os.system"),
        (lambda g: g["graph_module"]["graph"]["nodes"][0].update(target="_operator.call"), "_operator.call"),
        (lambda g: g["graph_module"]["graph"]["nodes"][0].update(target="torch.ops.mine.op"), "torch.ops.mine.op"),
        (
            lambda g: g["graph_module"]["graph"].update(sym_int_values={"s": {"as_expr": {"expr_str": "print(1)"}}}),
            "open",
        ),
        (lambda g: g.update(guards_code=["print(1)"]), "Python code"),
        (lambda g: g["graph_module"]["graph"]["nodes"][0].update(name="x; print(1)"), "identifier"),
        (
            lambda g: g["graph_module"]["graph"]["tensor_values"].update(x={**META, "sizes": [{"as_int": 1 << 40}]}),
            "elements",
        ),
        (
            lambda g: g["graph_module"]["module_call_graph"][0]["signature"].update(
                in_spec=SPEC.replace("builtins.tuple", "collections.defaultdict")
            ),
            "defaultdict",
        ),
    ],
    ids=["target", "call", "library", "expression", "guard", "name", "size", "container"],
)
def test_graphs_that_would_run_something_are_named(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], word: str
) -> None:
    content = {**members(), "models/model.json": changed(change)}
    assert word in refused(written(tmp_path, content))


def _signature(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda g: g["graph_module"]["module_call_graph"][0]["signature"].update(changes)


def _spec(kind: str, context: Any) -> str:
    return json.dumps([1, {"type": kind, "context": context, "children_spec": []}])


def _stated(**spec: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda g: g["graph_module"].update(signature={"input_specs": [spec]})


ENUM = '{"__enum__": true, "fqn": "antigravity:A", "name": "B"}'


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (_signature(forward_arg_names=["x", "y=print(1)"]), "print"),
        (_signature(forward_arg_names="x)"), "x)"),
        (_signature(in_spec=_spec("builtins.dict", '["x=print(1)"]')), "print"),
        (_signature(in_spec=_spec("collections.OrderedDict", ENUM)), "identifier"),
        (_signature(in_spec=_spec("builtins.dict", f"[{ENUM}]")), "identifier"),
        (_signature(out_spec=_spec("builtins.dict", "[")), "JSON"),
        (_signature(out_spec=_spec("builtins.dict", ["x"])), "identifier"),
        (_signature(in_spec=_spec("builtins.tuple", ENUM)), "never writes"),
        (_signature(in_spec=_spec("builtins.list", 1)), "never writes"),
        (_stated(parameter={"arg": {"name": "p"}, "parameter_name": "w; print(1)"}), "print"),
        (_stated(buffer={"arg": {"name": "b"}, "buffer_name": "b'"}), "b'"),
        (_stated(tensor_constant={"arg": {"name": "c"}, "tensor_constant_name": ["c"]}), "identifier"),
        (lambda g: g["graph_module"]["module_call_graph"][0].update(fqn="a b"), "a b"),
        *(
            (lambda g, target=target: g["graph_module"]["graph"]["nodes"][0].update(target=target), target)
            for target in (
                "torch.ops.aten.from_file.default",
                "torch.ops.aten.from_file",
                "torch.ops.aten.save.default",
                "torch.ops.higher_order.cond",
                "torch.ops.higher_order.call_torchbind",
                "torch.ops.higher_order.wrap_with_set_grad_enabled.x",
            )
        ),
    ],
)
def test_names_keys_and_operators_that_reach_further_are_named(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], word: str
) -> None:
    assert word in refused(written(tmp_path, {**members(), "models/model.json": changed(change)}))


@pytest.mark.parametrize(
    "change",
    [
        _signature(forward_arg_names=["x", "_y1"], in_spec=_spec("builtins.dict", '["x", "0"]')),
        _signature(out_spec=_spec("collections.OrderedDict", "[]"), forward_arg_names=None),
        _stated(parameter={"arg": {"name": "p"}, "parameter_name": "layers.0.weight"}),
        lambda g: g["graph_module"]["graph"]["nodes"][0].update(
            target="torch.ops.higher_order.wrap_with_set_grad_enabled"
        ),
    ],
)
def test_names_and_operators_as_torch_writes_them_pass(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = written(tmp_path, {**members(), "models/model.json": changed(change)})
    rewrite(path, tmp_path / "checked.pt2")


def test_a_weight_with_a_name_that_is_code_is_named(tmp_path: Path) -> None:
    content = listing().replace(b'"w"', b'"w; print(1)"')
    assert "print" in refused(written(tmp_path, members(model_weights_config=content)))


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 200_000, b'{"config": []}'])
def test_listings_that_are_no_json_are_refused(tmp_path: Path, content: bytes) -> None:
    assert refused(written(tmp_path, members(model_weights_config=content)))


def test_big_endian_and_other_formats_are_refused(tmp_path: Path) -> None:
    assert "little-endian" in refused(written(tmp_path, members(byteorder=b"big")))
    assert "format" in refused(written(tmp_path, members(archive_format=b"pt3")))


@pytest.mark.mutation
def test_without_the_look_at_example_inputs_one_that_runs_something_would_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content, bomb = members(), pickle.dumps(((Calls(),), {}), protocol=2)
    content["data/sample_inputs/model.pt"] = pickled(bomb)
    path = written(tmp_path, content)
    assert refused(path)
    monkeypatch.setattr("workers.networks.torch_archive.check_sample", lambda *_: None)
    rewrite(path, tmp_path / "checked.pt2")
    pickle.loads(bomb)
    assert capsys.readouterr().out == "run\n"
