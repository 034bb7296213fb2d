"""Pages and websockets of the web process, whose server bounds what requests bring: tuningsite.serve."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tuningsite.settings")
# Django must be set up before anything below imports a model.
django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.sessions import SessionMiddlewareStack  # noqa: E402
from django.conf import settings  # noqa: E402

from apps.core.spooled_body import SpooledBodies  # noqa: E402
from apps.dashboard.in_turn import InTurn  # noqa: E402
from apps.dashboard.origins import Origins  # noqa: E402
from apps.dashboard.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": InTurn(SpooledBodies()),
        # Who is signed in the consumer asks itself, when it knows that the peer does not ask too often.
        "websocket": Origins(SessionMiddlewareStack(URLRouter(websocket_urlpatterns)), settings.ORIGINS),
    }
)
