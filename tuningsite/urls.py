"""Every page belongs to the dashboard."""

from django.urls import include, path

urlpatterns = [path("", include("apps.dashboard.urls"))]
handler500 = "apps.dashboard.views.broken.broken"
