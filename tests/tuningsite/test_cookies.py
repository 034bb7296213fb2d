"""A browser sends cookies to all ports of their host: of two sites there each has its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.running import ROOT

PRINT = (
    "from tuningsite import settings as s; import json; "
    "print(json.dumps([s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.KNOWN_COOKIE_NAME]))"
)


def names(data: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PRINT],
        env={**os.environ, "DATA_DIR": str(data)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def test_sites_have_cookies_of_their_own_and_keep_their_names(tmp_path: Path) -> None:
    one, other = names(tmp_path / "one"), names(tmp_path / "other")
    assert len(one | other) == 6
    (tmp_path / "one").rename(tmp_path / "moved")
    assert names(tmp_path / "moved") == one
