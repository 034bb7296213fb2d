"""The site's models and services in a process that is not the web's; import this before anything of apps."""

from __future__ import annotations

import os

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tuningsite.settings")
if not apps.ready:
    django.setup()
