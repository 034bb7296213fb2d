"""One baseline in a process of its own: a JSON order on standard input, JSON answers on standard output."""

from __future__ import annotations

import sys

from workers.baselines.order import Answers, Order, tell

KNOWN = ("onnxruntime",)


def main(arguments: list[str]) -> int:
    """0 with {"baseline": ...}, once or for every line after the order; 1 with {"error": ...} when the baseline failed; 2 when
    the order is wrong."""
    return tell(_answers(arguments))


def _answers(arguments: list[str]) -> Answers:
    if arguments not in [[name] for name in KNOWN]:
        yield 2, {"error": f"{' '.join(arguments) or 'no baseline'}: unknown; name one of {', '.join(KNOWN)}"}
        return
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
    sys.exit(main(sys.argv[1:]))
