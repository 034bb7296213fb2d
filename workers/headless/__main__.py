"""`python -m workers.headless COMMAND`; `manage.py COMMAND` comes here. Exit codes: 0 done, 1 failed, 2 the user's mistake."""

from __future__ import annotations

import argparse
import sys

from workers.headless import control, landscape, tune
from workers.headless.errors import Failure, UserMistake


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="manage.py", description="Tuning without the web.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command, purpose in (
        ("tune", tune, "tune an ONNX network on this machine"),
        ("control", control, "pause or stop a run that `tune` started"),
        ("landscape", landscape, "record measurements to compare methods on without this machine"),
    ):
        parser_of = commands.add_parser(name, help=purpose)
        command.add_arguments(parser_of)
        parser_of.set_defaults(run=command.run)
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except UserMistake as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 2
    except Failure as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; what was measured is kept\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
