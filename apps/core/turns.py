"""One after the other, where what somebody asks for takes seconds of a processor that all others need too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary


class Turns:
    """At most `most` at a time for each key, in this process; others of the key wait, who came first goes first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: WeakValueDictionary[Any, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, key: Any, patience: float) -> AsyncIterator[None]:
        """Raises TimeoutError after so many seconds without a turn."""
        semaphore = self._taken.setdefault(key, asyncio.Semaphore(self.most))
        async with asyncio.timeout(patience):
            await semaphore.acquire()
        try:
            yield
        finally:
            semaphore.release()
