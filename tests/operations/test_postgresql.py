"""A database of PostgreSQL whose user may read it and no more."""

import os
import subprocess
import sys

import psycopg
import pytest

from tests.running import ROOT

ASKED = """
import django; django.setup()
from django.core.management import CommandError, call_command
from apps.operations import doctor
print(doctor.database().line())
try:
    call_command("up")
except CommandError as error:
    print(error)
"""


@pytest.mark.postgres
def test_a_user_who_may_make_no_tables_is_seen_and_told_what_to_do(postgres_url, postgres_folder, tmp_path):
    with psycopg.connect(host=postgres_folder, user="tests", dbname="postgres", autocommit=True) as own:
        own.execute("CREATE ROLE guest LOGIN")
    environment = {
        **os.environ,
        "DATA_DIR": str(tmp_path),
        "DATABASE_URL": postgres_url.replace("tests@", "guest@"),
        "DJANGO_SETTINGS_MODULE": "tuningsite.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", ASKED], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    seen, told = done.stdout.splitlines()
    assert seen.startswith("missing database: PostgreSQL answers, and its user may make no tables -> make that user")
    assert "permission denied for schema public" in told
    assert told.endswith("make that user the owner of the database: ALTER DATABASE name OWNER TO user")
