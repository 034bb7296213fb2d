"""How the system says that a disk, or what one may fill of it, has no room."""

from __future__ import annotations

import errno

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
