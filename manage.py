#!/usr/bin/env python
"""The one command of the site: `manage.py up` starts everything."""

import os
import sys

INSTALL = "source .venv/bin/activate, or {python} -m pip install -r requirements.txt"


def main() -> None:
    try:
        from django.core.management import execute_from_command_line

        from apps.operations.headless import PROGRAMS, become
    except ModuleNotFoundError as missing:  # of a Python that is not the environment's
        if str(missing.name).partition(".")[0] != "django":
            raise
        sys.exit(f"Django is not installed for {sys.executable}. Next step: {INSTALL.format(python=sys.executable)}.")
    if sys.argv[1:2] and sys.argv[1] in PROGRAMS:
        become(*sys.argv[1:])  # before the settings, which make the site's directory
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tuningsite.settings")
    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:  # of `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


if __name__ == "__main__":
    main()
