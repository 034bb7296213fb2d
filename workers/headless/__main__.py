"""`python -m workers.headless COMMAND`; `manage.py COMMAND` comes here."""

from __future__ import annotations

import argparse
import sys

from workers.headless.entry import module, run_command

COMMANDS = (
    ("tune", module("workers.headless.tune"), "tune an ONNX network on this machine"),
    ("control", module("workers.headless.control"), "pause or stop a run that `tune` started"),
    (
        "landscape",
        module("workers.headless.landscape"),
        "record measurements to compare methods on without this machine",
    ),
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="manage.py", description="Tuning without the web.")
    return run_command(parser, COMMANDS, "what was measured is kept; tune goes on with --resume", argv)


if __name__ == "__main__":
    sys.exit(main())
