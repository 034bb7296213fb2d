"""Settings of the site. What an operator of the site may set stands in the environment:

DATA_DIR            networks, artifacts, database, secret key (default: data/ beside manage.py)
DATABASE_URL        postgres://...; without it SQLite in DATA_DIR
REDIS_URL           redis://... or unix://...; without it the embedded server's socket and password. memory:// is for tests
BIND                host:port (default 127.0.0.1:8000); others than loopback need ALLOWED_HOSTS and an account
ALLOWED_HOSTS       host names, separated by commas
ORIGINS             full origins (https://tuning.example.org) of pages whose address is not the Host that the site is asked for
TLS                 1 when the site is reached by https, through a proxy that sets X-Forwarded-Proto and adds to
                    X-Forwarded-For the address it was asked from
PROXIES             that proxy's addresses, separated by commas, when it is not on this machine
UPLOAD_LIMIT        what one network may take, like 500MB or 1GB (default and most 2GB)
QUOTA               what the networks and compiled libraries of one account may take, and what it may upload in an hour, like
                    500MB or 50GiB (default 20GB)
ALLOW_TORCH_EXPORT  1 takes torch.export files (.pt2): loading one can run code of whoever made it, in a sandbox
THREADS             the most cores that networks are tuned and timed on (default: all that this user may use)
LOG_LEVEL           default INFO
TUNINGSITE_MEASURE_LOCK  the file that keeps apart what is timed by several sites (default: in /tmp)
DEBUG               1 shows errors to everybody who asks: for developers only
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF

from apps.core.ids import digest
from apps.operations.queue_address import socket_path, url_of
from tuningsite import environment
from tuningsite.private import make_private
from tuningsite.secret import secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
os.umask(0o077)  # networks, artifacts and accounts are nobody else's on this machine
DATA_DIR = environment.directory("DATA_DIR", BASE_DIR / "data")
make_private(DATA_DIR)

DEBUG = environment.switch("DEBUG")
TLS = environment.switch("TLS")
SECRET_KEY = secret_key(DATA_DIR / "secret_key")

BIND = environment.text("BIND", "127.0.0.1:8000")
_PORT = BIND.rpartition(":")[2]
EXTRA_HOSTS = environment.names("ALLOWED_HOSTS")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *EXTRA_HOSTS]
ORIGINS = environment.origins("ORIGINS") or [
    *(f"http://{host}:{_PORT}" for host in ALLOWED_HOSTS),
    *(f"https://{host}" for host in EXTRA_HOSTS if TLS),
]
environment.cores()  # children read it
PROXIES = environment.addresses("PROXIES")
# Of a name with all beneath it, as ALLOWED_HOSTS and websockets write it with a dot: here it has a star before that.
CSRF_TRUSTED_ORIGINS = [
    origin.replace("://.", "://*.") for origin in ORIGINS if not TLS or origin.startswith("https://")
]
CSRF_FAILURE_VIEW = "apps.dashboard.origins.refused_form"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "apps.core",
    "apps.catalog",
    "apps.tuning",
    "apps.dashboard",
    "apps.operations",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "apps.core.unstored.Unstored",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "apps.core.renewal.RenewedSessions",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "apps.dashboard.uploads.UnkeptFiles",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "tuningsite.urls"
ASGI_APPLICATION = "tuningsite.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def _sqlite() -> dict[str, Any]:
    # Before 3.51.3 two writers can corrupt a write-ahead log when it is reset.
    wal = sqlite3.sqlite_version_info >= (3, 51, 3)
    journal = "journal_mode=WAL;PRAGMA synchronous=NORMAL" if wal else "journal_mode=DELETE;PRAGMA synchronous=FULL"
    # IMMEDIATE: a transaction that reads first and writes later would find the database locked.
    options = {"timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": f"PRAGMA {journal};"}
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA_DIR / "db.sqlite3", "OPTIONS": options}


DATABASES: dict[str, Any] = {"default": environment.database("DATABASE_URL") or _sqlite()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = environment.queue("REDIS_URL") or url_of(socket_path(DATA_DIR), secret_key(DATA_DIR / "queue_password"))
if REDIS_URL.startswith("memory:"):
    CHANNEL_LAYERS: dict[str, Any] = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
else:
    # An idle subscription must not time out: with a socket timeout every quiet websocket would die.
    _host = {"address": REDIS_URL, "socket_timeout": None, "socket_connect_timeout": 2}
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [_host], "prefix": "tuningsite"},
        }
    }

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [folder for folder in (BASE_DIR / "static",) if folder.is_dir()]
# Served as they are in the repository: a start needs no collecting.
WHITENOISE_USE_FINDERS = True

LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LARGEST_NETWORK = 2_000_000_000  # bytes of a file that can be read: workers.networks.limits
UPLOAD_LIMIT = environment.size("UPLOAD_LIMIT", "2GB", LARGEST_NETWORK)
QUOTA = environment.size("QUOTA", "20GB")
ALLOW_TORCH_EXPORT = environment.switch("ALLOW_TORCH_EXPORT")
BODY_LIMIT = 1 << 16  # bytes of any other request: anybody may send one, and the server has it in memory
UPLOAD_PATHS = ("/networks/",)
UPLOAD_FORM = BODY_LIMIT  # of an upload what may be something else than its file
FILE_UPLOAD_TEMP_DIR = DATA_DIR / "uploads"
FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, exist_ok=True)
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.TemporaryFileUploadHandler"]
DATA_UPLOAD_MAX_MEMORY_SIZE = BODY_LIMIT
DATA_UPLOAD_MAX_NUMBER_FILES = 4

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# A browser sends cookies to all ports of their host: two sites there must not take, or replace, each other's.
_SITE = digest("cookies", SECRET_KEY)[:8]
QUEUES = f"tuningsite-{_SITE}"  # so must two on one server of queues
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME, KNOWN_COOKIE_NAME, TOLD_COOKIE_NAME = (
    f"{name}_{_SITE}" for name in ("sessionid", "csrftoken", "signed_in_here", "told")
)
# In the session they would add up for whoever never looks at a page.
MESSAGE_STORAGE = "apps.core.told.Told"
SESSION_ENGINE = "apps.core.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = TLS
if TLS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 30 * 24 * 3600
    SECURE_REDIRECT_EXEMPT = ["^health$"]  # asked from this machine, past the proxy
    # Subdomains and browsers' preload lists are about hosts that are not this site's to decide.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "class": "apps.core.log_lines.Lines",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": environment.level("LOG_LEVEL", "INFO")},
    # The access line says 400; a traceback for each would push everything else out of the log.
    "loggers": {"django.security.DisallowedHost": {"level": "CRITICAL"}},
}
