#!/usr/bin/env python
"""The one command of the site: `manage.py up` starts everything."""

import os
import sys

INSTALL = "source .venv/bin/activate, or {python} -m pip install -r requirements.txt"


def main() -> None:
    try:
        run()
    except ModuleNotFoundError as missing:  # of a Python that is not the environment's, or half of one
        name = str(missing.name)
        if name.partition(".")[0] in ("apps", "workers", "tuningsite"):
            raise
        sys.exit(f"{name} is not installed for {sys.executable}. Next step: {INSTALL.format(python=sys.executable)}.")


def run() -> None:
    from apps.operations.headless import PROGRAMS, become

    if sys.argv[1:2] and sys.argv[1] in PROGRAMS:
        become(*sys.argv[1:])  # before the settings, which make the site's directory
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tuningsite.settings")
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:  # of `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


if __name__ == "__main__":
    main()
