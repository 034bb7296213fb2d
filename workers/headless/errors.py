"""How a headless command ends when it cannot go on; the texts are for the user."""


class UserMistake(Exception):
    """Exit code 2: the value, the reason and the next step in one line."""


class Failure(Exception):
    """Exit code 1: not the user's doing."""


class EndedEarly(Failure):
    """A process that said neither what it found nor why not: killed, or cut off from a device."""
