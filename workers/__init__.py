"""Everything that runs outside the web process; the rooms and their doors are described in the README."""
