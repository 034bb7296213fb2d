"""The inside of a part in a process of its own: a JSON order on standard input, events on standard output, a line each.

The last event is {"kind": "result", ...}, or {"kind": "failed", "reason"} with status 1.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

Tell = Callable[[dict[str, Any]], None]


def answer(work: Callable[[dict[str, Any], Tell], dict[str, Any]]) -> int:
    """Does the order's work; 0 with its result, 1 with the reason why there is none: of TVM's errors the last line."""
    # Libraries write to standard output as they like: the events keep the real one for themselves.
    with os.fdopen(os.dup(1), "w", buffering=1) as channel:
        os.dup2(2, 1)

        def tell(event: dict[str, Any]) -> None:
            channel.write(json.dumps(event) + "\n")

        try:
            tell({"kind": "result", **work(json.loads(sys.stdin.read()), tell)})
        except Exception as error:  # whatever the library throws is the answer
            traceback.print_exc()
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            tell({"kind": "failed", "reason": f"{type(error).__name__}: {(lines or [''])[-1][:300]}"})
            return 1
    return 0


def leave(code: int) -> None:
    """Ends the process at once: TVM's thread pool has nothing to say at exit."""
    sys.stderr.flush()
    os._exit(code)
