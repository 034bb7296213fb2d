"""What a child and all it starts take of the machine, against what they may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.sandbox.files import kept
from workers.sandbox.tree import Tree

_LOOK = 2.0  # s between full searches for members of the tree, and between looks at its files
_SHARE = 0.02  # of the time that looking at files may take: a tree of many is looked at less often


class Violation(Exception):
    """The child broke a rule and has to go; `cause` and `detail` as in Ending."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail


@dataclass(frozen=True)
class Bounds:
    """Bytes for the whole tree, None for no bound: `resident` of memory, `disk` of files beneath `directories`."""

    resident: int | None = None
    disk: int | None = None
    directories: tuple[str, ...] = ()


class Footprint:
    """Looks at a tree as often as its bounds need; call `check` often."""

    def __init__(self, tree: Tree, bounds: Bounds, clock: Callable[[], float]) -> None:
        self._tree = tree
        self._bounds = bounds
        self._clock = clock
        self._members: Sequence[int] = ()
        self._search_due = self._files_due = clock()

    def check(self) -> None:
        """Raises Violation for a tree beyond its bounds."""
        if self._bounds.resident is None and self._bounds.disk is None:
            return
        if self._clock() >= self._search_due:
            self._members = self._tree.refresh()
            self._search_due = self._clock() + _LOOK
        if self._bounds.resident is not None:
            self._check_memory(self._bounds.resident)
        if self._bounds.disk is not None and self._clock() >= self._files_due:
            began = self._clock()
            self._check_files(self._bounds.disk)
            now = self._clock()
            self._files_due = now + max(_LOOK, (now - began) / _SHARE)

    def _check_memory(self, most: int) -> None:
        held = self._tree.resident()
        if held > most:
            raise Violation(
                "memory",
                f"it and its workers held {held / 2**20:.0f} MiB of memory, more than the "
                f"{most / 2**20:.0f} MiB allowed; raise the limit or take a smaller network",
            )

    def _check_files(self, most: int) -> None:
        if kept(self._bounds.directories, self._members, most) > most:
            raise Violation(
                "disk",
                f"it and its workers wrote more than the {most / 2**20:.0f} MiB of files allowed, "
                "or more files than have room there; take a smaller network",
            )
