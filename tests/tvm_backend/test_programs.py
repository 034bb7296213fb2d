"""What a scheduled program is compiled for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tvm_backend.local import target

pytestmark = pytest.mark.tvm


def made(wanted: dict[str, Any]) -> Any:
    import tvm

    return tvm.target.Target(wanted)


def test_a_program_is_compiled_for_the_same_processor_at_another_level():
    from workers.tvm_backend.programs import LEVEL, quickly

    here = made({**target(), "mattr": ["+fma"]})
    assert dict(quickly(here).export()) == {**dict(here.export()), "opt-level": LEVEL}


def test_what_llvm_does_not_compile_has_no_level():
    from workers.tvm_backend.programs import quickly

    written = made({"kind": "c"})
    assert quickly(written) is written
