"""`python -m workers.benchmarks COMMAND`; `manage.py benchmark COMMAND` comes here. Exit codes: 0 done, 1 some part failed,
2 the user's mistake, 130 stopped."""

from __future__ import annotations

import argparse
import sys

from workers.benchmarks import latency, speed
from workers.benchmarks.methods import command as methods
from workers.headless.errors import Failure, UserMistake


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="manage.py benchmark", description="Comparisons, resumable cell by cell.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command, purpose in (
        ("speed", speed, "tuning time: TVM's own tuning against ours"),
        ("methods", methods, "methods against methods, on landscapes or live, and the papers' claims"),
        ("latency", latency, "latency after tuning, against ONNX Runtime and PyTorch"),
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
        sys.stderr.write("\nstopped; finished cells are kept, the same command goes on\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
