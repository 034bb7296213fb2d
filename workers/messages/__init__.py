"""What the web process and the workers say to each other: standard library only, so that both sides may import it."""

from workers.messages.events import Event, decode, encode
from workers.messages.spec import Budget, RunSpec

__all__ = ["Budget", "Event", "RunSpec", "decode", "encode"]
