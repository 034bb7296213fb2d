"""What fits."""

MOST = 2**15 - 1
"""Of a factor. The least number of 16 bits is left out: two products of it by itself have no room."""
ROOM = 2**31 - 1
"""Of a sum."""
