"""How a headless command ends when it cannot go on; the texts are for the user."""


class UserMistake(Exception):
    """Exit code 2: the value, the reason and the next step in one line."""


class Failure(Exception):
    """Exit code 1: not the user's doing."""
