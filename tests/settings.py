"""The site's settings with everything it keeps in a directory of the tests' own."""

import os
import tempfile
from pathlib import Path

os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="tuningsite-tests-")
os.environ["REDIS_URL"] = "memory://"
_SET = "ALLOWED_HOSTS ORIGINS BIND TLS PROXIES DEBUG UPLOAD_LIMIT QUOTA ALLOW_TORCH_EXPORT"
for _name in _SET.split():
    os.environ.pop(_name, None)

from tuningsite.settings import *  # noqa: E402, F403
from tuningsite.settings import DATA_DIR, DATABASES  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # In memory it would have one connection only: races would never be seen.
    DATABASES["default"]["TEST"] = {"NAME": str(Path(DATA_DIR) / "test.sqlite3")}
