"""What is tuned, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models

from apps.core.ids import new_id
from workers.messages.device import Address


class Network(models.Model):
    """An uploaded network; its file is kept once by content, whoever uploaded it. Deleted, it is nobody's until it is gone.

    `file_name` is the upload's own; `source` the content hash of a torch.export file. Until that is converted,
    `sha256` and `size` are the upload's; then they are the ONNX file's.
    """

    class State(models.TextChoices):
        INSPECTING = "inspecting"
        READY = "ready"
        REJECTED = "rejected"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="networks", null=True)
    name = models.CharField(max_length=200)
    file_name = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=64, blank=True)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    state = models.CharField(max_length=12, choices=State, default=State.INSPECTING)
    inspection: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    shapes: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    next_step = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created",)
        constraints = (models.UniqueConstraint(fields=("owner", "sha256"), name="network_once_an_owner"),)

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return Path(settings.DATA_DIR) / "networks" / f"{self.sha256}.onnx"

    @property
    def source_path(self) -> Path:
        return Path(settings.DATA_DIR) / "networks" / f"{self.source}.pt2"

    @property
    def unconverted(self) -> bool:
        """A torch.export file that is no ONNX yet."""
        return bool(self.source) and self.source == self.sha256

    @property
    def dynamic(self) -> list[dict[str, Any]]:
        """Dimensions a user still has to choose: {input, axis, symbol}."""
        return [] if self.shapes else list(self.inspection.get("dynamic", ()))


class Target(models.Model):
    """Hardware, and what TVM compiles for it; seen by all accounts. `peak_flops` in FLOP/s, `bandwidth` in bytes/s.

    Of kind DEVICE programs are timed elsewhere: at `host` and `port`, by who has its `key`, which no page shows.
    """

    LOCAL, DEVICE = "local", "device"

    class State(models.TextChoices):
        NEW = "new"
        READY = "ready"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=12, default=LOCAL)
    host = models.CharField(max_length=255, blank=True)
    port = models.PositiveIntegerField(default=0)
    key = models.CharField(max_length=200, blank=True)
    new_key = models.CharField(max_length=200, blank=True)
    hardware: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    tvm: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    versions: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    threads = models.PositiveIntegerField(default=0)
    peak_flops = models.FloatField(default=0.0)
    bandwidth = models.FloatField(default=0.0)
    measured_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=12, choices=State, default=State.NEW)
    error = models.TextField(blank=True)
    next_step = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("created",)
        constraints = (models.UniqueConstraint(fields=("kind", "host", "port"), name="target_once"),)

    def __str__(self) -> str:
        return self.name

    @property
    def device(self) -> Address | None:
        """Where it is, unless it is this machine."""
        return self._with(self.key)

    @property
    def tried(self) -> Address | None:
        """The same with the key that it is tested with: a new one counts once the device has taken it."""
        return self._with(self.new_key or self.key)

    def _with(self, key: str) -> Address | None:
        return Address(self.host, self.port, key) if self.kind == self.DEVICE else None
