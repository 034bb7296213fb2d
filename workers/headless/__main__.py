"""`python -m workers.headless COMMAND`; `manage.py COMMAND` comes here. Exit codes: 0 done, 1 failed, 2 the user's mistake."""

from __future__ import annotations

import argparse
import sys

from workers.headless.errors import Failure, UserMistake
from workers.headless.tune import add_arguments, run


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="manage.py", description="Tuning without the web.")
    commands = parser.add_subparsers(dest="command", required=True)
    tune = commands.add_parser("tune", help="tune an ONNX network on this machine")
    add_arguments(tune)
    tune.set_defaults(run=run)
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
