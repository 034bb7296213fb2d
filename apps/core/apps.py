from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "apps.core"

    def ready(self) -> None:
        from apps.core import renewal  # noqa: F401  (it registers itself)
