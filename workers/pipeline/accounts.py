"""Where the seconds of a clock go: spans that may lie in each other, each second in one account only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import TracebackType

from workers.engine.ports import Clock


class Accounts:
    """Seconds by account name, "group/part". Of spans in each other the innermost is charged. For one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: list[_Span] = []
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def spending(self, account: str) -> _Span:
        """A context that charges the time inside to `account`, but for what is charged to others meanwhile."""
        return _Span(self, account)

    def claim(self, account: str, seconds: float) -> None:
        """Charges seconds of the innermost open span to `account`: whoever was called kept count itself."""
        self._seconds[account] += seconds
        if self._open:
            self._open[-1].others += seconds

    def of(self) -> dict[str, float]:
        """Seconds by account so far; a span that is still open counts for nothing yet."""
        return dict(self._seconds)

    def enter(self, span: _Span) -> None:
        span.began = self._clock.now()
        span.others = 0.0
        self._open.append(span)

    def leave(self, span: _Span) -> None:
        self._open.pop()
        taken = self._clock.now() - span.began
        self._seconds[span.account] += taken - span.others
        if self._open:
            self._open[-1].others += taken


class _Span:
    """A class, not a generator: the search enters one thousands of times a slot."""

    __slots__ = ("_accounts", "account", "began", "others")

    def __init__(self, accounts: Accounts, account: str) -> None:
        self._accounts, self.account = accounts, account
        self.began = self.others = 0.0

    def __enter__(self) -> None:
        self._accounts.enter(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._accounts.leave(self)


def grouped(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds by group, the part of the name before the first slash."""
    groups: defaultdict[str, float] = defaultdict(float)
    for account, taken in seconds.items():
        groups[account.partition("/")[0]] += taken
    return dict(groups)


def parts(seconds: Mapping[str, float], group: str) -> dict[str, float]:
    """Seconds of one group by the part of the name after the first slash."""
    places = ((account.partition("/"), taken) for account, taken in seconds.items())
    return {part: taken for (of, _, part), taken in places if of == group}


def since(now: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """What was added to each account; those that nothing was added to are left out."""
    found = {account: seconds - before.get(account, 0.0) for account, seconds in now.items()}
    return {account: seconds for account, seconds in found.items() if seconds}
