"""The site's own settings, started as an operator of the site starts them."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tuningsite.private import make_private
from tuningsite.secret import secret_key

ROOT = Path(__file__).resolve().parents[3]


def manage(data: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    command = [sys.executable, "-W", "error", "manage.py", *words]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**kept, "DATA_DIR": str(data), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_deployment_with_tls_has_no_warning(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", TLS="1", ALLOWED_HOSTS="tuning.example.org")
    assert done.returncode == 0, done.stderr


def test_migrations_are_complete(tmp_path: Path) -> None:
    done = manage(tmp_path, "makemigrations", "--check", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "secret_key"
    path.parent.mkdir()
    assert secret_key(path) == secret_key(path)
    assert len(secret_key(path)) >= 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]


@pytest.mark.parametrize("others", ["", "another's"])
def test_where_nothing_can_be_linked_the_key_is_made_once_too(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    """And one that another process made meanwhile is kept."""
    path = data_dir / "secret_key"

    def link(partial: Path, path: Path) -> None:
        if others:
            path.write_text(others)
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    key = secret_key(path)
    assert key == others if others else len(key) >= 50
    assert secret_key(path) == key
    assert list(data_dir.iterdir()) == [path]


def test_what_the_site_keeps_is_private(tmp_path: Path) -> None:
    data = tmp_path / "kept"
    data.mkdir()
    data.chmod(0o755)
    (data / "secret_key").write_text("x" * 50)
    (data / "db.sqlite3").touch()
    (data / "db.sqlite3").chmod(0o644)
    (data / "db.sqlite3-journal").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()
    (tmp_path / "elsewhere").chmod(0o644)
    make_private(data)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (data, data / "db.sqlite3", tmp_path / "elsewhere")
    }
    assert modes == {"kept": 0o700, "db.sqlite3": 0o600, "elsewhere": 0o644}


def test_a_folder_that_others_use_stays_open(tmp_path: Path) -> None:
    sticky, full = tmp_path / "sticky", tmp_path / "full"
    for folder in (sticky, full):
        folder.mkdir()
    sticky.chmod(0o1777)
    full.chmod(0o755)
    (full / "somebody's").touch()
    for folder, mode in ((sticky, 0o1777), (full, 0o755)):
        make_private(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == mode
