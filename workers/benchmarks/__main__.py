"""`python -m workers.benchmarks COMMAND`; `manage.py benchmark COMMAND` comes here. 1 says that some cell failed."""

from __future__ import annotations

import argparse
import sys

from workers.headless.entry import module, run_command

COMMANDS = (
    ("speed", module("workers.benchmarks.speed"), "tuning time: TVM's own tuning against ours"),
    (
        "methods",
        module("workers.benchmarks.methods.command"),
        "methods against methods, on landscapes or live, and the papers' claims",
    ),
    ("latency", module("workers.benchmarks.latency"), "latency after tuning, against ONNX Runtime and PyTorch"),
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="manage.py benchmark", description="Comparisons, resumable cell by cell.")
    return run_command(parser, COMMANDS, "finished cells are kept, the same command goes on", argv)


if __name__ == "__main__":
    sys.exit(main())
