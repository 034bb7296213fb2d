"""A site of real processes in which a storyteller stands in for the worker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.processes import Answering
from tests.running import ROOT, Running


class Site(Running):
    """`up`, then orders by `tell`; `close` ends every process. On SQLite, or `database`."""

    def __init__(self, folder: Path, database: str = "") -> None:
        super().__init__(folder)
        self.database = database
        self.environment |= {"DJANGO_SETTINGS_MODULE": "tuningsite.settings", "LOG_LEVEL": "WARNING"}
        if database:
            self.environment["DATABASE_URL"] = database
        self._teller: Answering | None = None

    def up(self) -> None:
        self.server()
        teller = [sys.executable, "-m", "tests.browser.storyteller"]
        self._teller = Answering(teller, self.folder / "teller.log", env=self.environment, cwd=ROOT)
        self.finish()
        self.start_web()

    def close(self) -> None:
        if self._teller is not None:
            self._teller.close()
        super().close()

    def tell(self, do: str, **order: Any) -> dict[str, Any]:
        """Orders the storyteller and returns its answer."""
        self.begin(do, **order)
        return self.finish()

    def begin(self, do: str, **order: Any) -> None:
        """Orders without waiting; `finish` waits."""
        assert self._teller is not None
        self._teller.begin({"do": do, **order})

    def finish(self) -> dict[str, Any]:
        assert self._teller is not None
        return dict(self._teller.finish())
