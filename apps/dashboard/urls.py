"""Addresses. What has an owner has a UUID; somebody else's is 404."""

from __future__ import annotations

from django.urls import path

from apps.dashboard.views import health, home, jobs, methods, networks, operators, runs, sign_in, storage, targets

urlpatterns = [
    path("", home.home, name="home"),
    path("health", health.health, name="health"),
    path("login/", sign_in.SignIn.as_view(), name="login"),
    path("login/<str:token>/", sign_in.by_link, name="login-by-link"),
    path("logout/", sign_in.SignOut.as_view(), name="logout"),
    path("password/", sign_in.Password.as_view(), name="password"),
    path("example/", home.example, name="start-example"),
    path("example/<uuid:pk>/", home.preparing, name="example"),
    path("example/<uuid:pk>/start", home.start_example, name="example-run"),
    path("networks/", networks.networks, name="networks"),
    path("networks/<uuid:pk>/", networks.network, name="network"),
    path("networks/<uuid:pk>/runs", networks.compared, name="compared"),
    path("networks/<uuid:pk>/runs.csv", networks.compared_table, name="compared-table"),
    path("networks/<uuid:pk>/state", networks.shown, name="network-state"),
    path("networks/<uuid:pk>/delete", storage.delete_network, name="delete-network"),
    path("targets/", targets.targets, name="targets"),
    path("targets/<uuid:pk>/measure", targets.remeasure, name="remeasure"),
    path("targets/add", targets.add, name="add-device"),
    path("targets/<uuid:pk>/remove", targets.remove, name="remove-device"),
    path("methods/", methods.methods_page, name="methods"),
    path("runs/new", runs.new, name="new-run"),
    path("runs/<uuid:pk>/", runs.run, name="run"),
    path("runs/<uuid:pk>/operators/<int:index>/", operators.operator, name="operator"),
    path("runs/<uuid:pk>/operators/<int:index>/measurements.csv", operators.measurements, name="operator-table"),
    path("runs/<uuid:pk>/snapshot.json", runs.shot, name="snapshot"),
    path("runs/<uuid:pk>/standing", runs.standing, name="standing"),
    path("runs/<uuid:pk>/compile", runs.compile_best, name="compile"),
    path("runs/<uuid:pk>/baselines", runs.take_baselines, name="take-baselines"),
    path("runs/<uuid:pk>/ask/<str:word>", runs.ask, name="ask"),
    path("jobs/<uuid:pk>/log", jobs.log, name="job-log"),
    path("runs/<uuid:pk>/downloads/", runs.downloads, name="downloads"),
    path("runs/<uuid:pk>/downloads/<str:name>", runs.file, name="run-file"),
    path("artifacts/<uuid:pk>/download", runs.artifact, name="artifact"),
    path("artifacts/<uuid:pk>/delete", storage.delete_library, name="delete-library"),
    path("storage/", storage.storage, name="storage"),
]
