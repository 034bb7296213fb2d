"""Bounded buffers for what a child says: lines of events, and the tail of a log."""

from __future__ import annotations

MAX_LINE = 16 << 20
"""Bytes. A checkpoint is the longest, 0.8 MB of DenseNet-121's operators; read, a line may take twenty times as much memory."""
LOG_TAIL = 64 << 10


class LineTooLong(ValueError):
    """A line went over the limit before it ended."""


class LineBuffer:
    """Cuts a stream into lines of at most `MAX_LINE` bytes."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends. Raises LineTooLong."""
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = bytes(self._rest) + complete[0]
            self._rest = bytearray(rest)
        else:
            self._rest += rest
        if len(self._rest) > MAX_LINE or any(len(line) > MAX_LINE for line in complete):
            raise LineTooLong(f"a line of more than {MAX_LINE} bytes")
        return complete


class LogTail:
    """The last `LOG_TAIL` bytes of a stream."""

    def __init__(self) -> None:
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._tail += chunk
        del self._tail[:-LOG_TAIL]

    def text(self) -> str:
        """What is kept; undecodable bytes are replaced."""
        return self._tail.decode(errors="replace")
