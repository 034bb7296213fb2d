"""Websockets."""

from __future__ import annotations

from django.urls import path, re_path

from apps.dashboard.consumers import Nowhere, RunConsumer

websocket_urlpatterns = [path("ws/runs/<uuid:run>/", RunConsumer.as_asgi()), re_path("", Nowhere.as_asgi())]
