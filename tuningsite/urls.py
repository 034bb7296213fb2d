"""Every page belongs to the dashboard."""

from django.urls import include, path

urlpatterns = [path("", include("apps.dashboard.urls"))]
handler400 = "apps.dashboard.views.broken.refused"
handler500 = "apps.dashboard.views.broken.broken"
