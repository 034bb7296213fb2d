"""`python -m workers.benchmarks COMMAND`; `manage.py benchmark COMMAND` comes here. 1 says that some cell failed."""

from __future__ import annotations

import argparse
import sys

from workers.benchmarks import latency, speed
from workers.benchmarks.methods import command as methods
from workers.headless.entry import run_command

COMMANDS = (
    ("speed", speed, "tuning time: TVM's own tuning against ours"),
    ("methods", methods, "methods against methods, on landscapes or live, and the papers' claims"),
    ("latency", latency, "latency after tuning, against ONNX Runtime and PyTorch"),
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="manage.py benchmark", description="Comparisons, resumable cell by cell.")
    return run_command(parser, COMMANDS, "finished cells are kept, the same command goes on", argv)


if __name__ == "__main__":
    sys.exit(main())
