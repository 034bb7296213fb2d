"""What a child and all it starts take of the machine, against what they may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.sandbox.files import kept
from workers.sandbox.tree import Tree

_LOOK = 2.0  # s between full searches for members of the tree, and between looks at its files
_SHARE = 0.02  # of the time that looking at files, or at memory page by page, may take: much is looked at less often
_GROWTH = 0.05  # of the memory allowed, after which pages are looked at all the same


class Violation(Exception):
    """The child broke a rule and has to go; `cause` and `detail` as in Ending."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail


@dataclass(frozen=True)
class Bounds:
    """For the whole tree, None for no bound: bytes `resident` of memory and `disk` of files beneath `directories`, which
    `supervise` fills in; `threads`.

    `shared`: pages that several have count once. Not for code that means harm, which could share them and write to them all
    between two looks.
    """

    resident: int | None = None
    shared: bool = False
    disk: int | None = None
    directories: tuple[str, ...] = ()
    threads: int | None = None


class Footprint:
    """Looks at a tree as often as its bounds need; call `check` often."""

    def __init__(self, tree: Tree, bounds: Bounds, clock: Callable[[], float]) -> None:
        self._tree = tree
        self._bounds = bounds
        self._clock = clock
        self._members: Sequence[int] = ()
        self._search_due = self._files_due = self._pages_due = clock()
        self._resident = 0  # at the last look at pages

    def check(self) -> None:
        """Raises Violation for a tree beyond its bounds."""
        if self._bounds.resident is self._bounds.disk is self._bounds.threads is None:
            return
        if self._clock() >= self._search_due:
            self._members = self._tree.refresh()
            self._search_due = self._clock() + _LOOK
            if self._bounds.threads is not None:
                self._check_threads(self._bounds.threads)
        if self._bounds.resident is not None:
            self._check_memory(self._bounds.resident)
        if self._bounds.disk is not None and self._clock() >= self._files_due:
            began = self._clock()
            self._check_files(self._bounds.disk)
            self._files_due = self._clock() + max(_LOOK, self._rest(began))

    def _rest(self, began: float) -> float:
        """Seconds until one may look again, after a look that began then."""
        return (self._clock() - began) / _SHARE

    def _check_threads(self, most: int) -> None:
        if (held := self._tree.threads()) > most:
            raise Violation(
                "processes",
                f"it and its workers had {held:,} processes and threads, more than the {most:,} allowed; take another network",
            )

    def _check_memory(self, most: int) -> None:
        held, began = self._tree.resident(), self._clock()
        self._resident = min(self._resident, held)
        if held > most and self._bounds.shared:  # it is dear to count pages once: only where it decides
            if began < self._pages_due and held - self._resident < _GROWTH * most:
                return
            self._resident, held = held, self._tree.proportional()
            self._pages_due = self._clock() + self._rest(began)
        if held > most:
            raise Violation(
                "memory",
                f"it and its workers held {held / 2**20:.0f} MiB of memory, more than the "
                f"{most / 2**20:.0f} MiB allowed; take a smaller network",
            )

    def _check_files(self, most: int) -> None:
        if kept(self._bounds.directories, self._members, most) > most:
            raise Violation(
                "disk",
                f"it and its workers wrote more than the {most / 2**20:.0f} MiB of files allowed, "
                "or more files than have room there; take a smaller network",
            )
