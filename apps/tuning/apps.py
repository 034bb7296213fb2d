from django.apps import AppConfig


class TuningConfig(AppConfig):
    name = "apps.tuning"

    def ready(self) -> None:
        from apps.tuning import receivers  # noqa: F401  (they register themselves)
