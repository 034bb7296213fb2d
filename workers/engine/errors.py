"""Errors of the engine; each message names the value, the reason and the next step."""


class EngineError(Exception):
    """Base of the engine's errors."""


class UnknownPart(EngineError):
    """A method or a part of one was asked for by a name nobody registered."""


class IllegalMethod(EngineError):
    """Parts that exist but do not fit together."""
