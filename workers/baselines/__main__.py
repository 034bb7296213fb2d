"""One baseline in a process of its own: a JSON order on standard input, a JSON answer on standard output."""

from __future__ import annotations

import json
import os
import sys

from workers.baselines.order import Order

KNOWN = ("onnxruntime",)


def main(arguments: list[str]) -> int:
    """0 with {"baseline": ...}; 1 with {"error": ...} when the baseline failed; 2 when the order is wrong."""
    # Libraries write to standard output as they like: the answer keeps the real one for itself.
    with os.fdopen(os.dup(1), "w") as channel:
        os.dup2(2, 1)
        code, line = _answer(arguments, sys.stdin.read())
        channel.write(json.dumps(line, sort_keys=True) + "\n")
    return code


def _answer(arguments: list[str], text: str) -> tuple[int, dict[str, object]]:
    if arguments not in [[name] for name in KNOWN]:
        return 2, {"error": f"{' '.join(arguments) or 'no baseline'}: unknown; name one of {', '.join(KNOWN)}"}
    try:
        order = Order.from_json(text)
    except (ValueError, TypeError) as error:
        return 2, {"error": f"the order cannot be read: {error}"}
    # Heavy, and only needed once the order stands.
    from workers.baselines.onnxruntime import measure

    try:
        return 0, measure(order)
    except Exception as error:  # whatever the library throws is the answer
        return 1, {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
