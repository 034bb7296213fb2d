"""Pages and websockets of the web process."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tuningsite.settings")
# Django must be set up before anything below imports a model.
_pages = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import OriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402

from apps.core.body_limit import BodyLimit  # noqa: E402
from apps.core.spooled_body import SpooledBody  # noqa: E402
from apps.dashboard.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": SpooledBody(
            BodyLimit(
                _pages,
                limit=settings.BODY_LIMIT,
                uploads=settings.UPLOAD_PATHS,
                upload_limit=settings.UPLOAD_LIMIT + (1 << 20),
            )
        ),
        "websocket": OriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)), settings.ORIGINS),
    }
)
