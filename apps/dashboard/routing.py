"""Websockets."""

from __future__ import annotations

from django.urls import path

from apps.dashboard.consumers import RunConsumer

websocket_urlpatterns = [path("ws/runs/<uuid:run>/", RunConsumer.as_asgi())]
