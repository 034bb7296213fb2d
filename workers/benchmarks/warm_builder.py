"""MetaSchedule's local builder without its two costs: new processes for every batch, and 19 s of intrinsics in each."""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.ir import IRModule
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.builder.local_builder import default_build, default_export
from tvm.support.popen_pool import PopenPoolExecutor, StatusKind
from tvm.target import Target

from workers.tvm_backend import runtime


def build_and_export(order: tuple[IRModule, Target]) -> str:
    """In a worker: path of the archive of object files that the stock runner loads."""
    mod, target = order
    return str(default_export(default_build(mod, target, None)))


@derived_object
class WarmBuilder(ms.builder.PyBuilder):  # type: ignore[misc]
    """Compiles as LocalBuilder does, with the same build and export functions, in processes that stay."""

    def __init__(self, workers: int, target: dict[str, Any], timeout: float) -> None:
        super().__init__()
        self._timeout = timeout
        self._pool = PopenPoolExecutor(max_workers=workers, timeout=timeout, initializer=partial(runtime.load, target))

    def build(self, build_inputs: list[Any]) -> list[Any]:
        orders = [(order.mod, order.target) for order in build_inputs]
        return [self._result(found) for found in self._pool.map_with_error_catching(build_and_export, orders)]

    def close(self) -> None:
        """Ends the processes."""
        self._pool.shutdown()

    def _result(self, found: Any) -> Any:
        if found.status == StatusKind.COMPLETE:
            return ms.builder.BuilderResult(found.value, None)
        late = found.status == StatusKind.TIMEOUT
        return ms.builder.BuilderResult(None, f"killed after {self._timeout} s" if late else str(found.value))
