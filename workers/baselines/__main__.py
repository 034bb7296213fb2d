"""ONNX Runtime in a process of its own: a JSON order on standard input, JSON answers on standard output."""

from __future__ import annotations

import sys

from workers.baselines.order import Answers, Order, tell


def main() -> int:
    """0 with {"baseline": ...}, once or for every line after the order; 1 with {"error": ...} when ONNX Runtime failed; 2 when
    the order is wrong."""
    return tell(_answers())


def _answers() -> Answers:
    try:
        order = Order.from_json(sys.stdin.readline())
    except (ValueError, TypeError) as error:
        yield 2, {"error": f"the order cannot be read: {error}"}
        return
    # Heavy, and only needed once the order stands.
    from workers.baselines.onnxruntime import measured

    try:
        for found in measured(order, sys.stdin):
            yield 0, found
    except Exception as error:  # whatever the library throws is the answer
        yield 1, {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    sys.exit(main())
