"""Jobs and what they found. Changed through services.py alone. Times of day in UTC, durations and latencies in seconds.

What there are thousands of has no index on `run` alone: the unique ones begin with it, and each costs every insertion.
"""

from __future__ import annotations

import json
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models

from apps.catalog.models import Network, Target
from apps.core import clock
from apps.core.ids import new_id
from apps.tuning.states import State
from workers.messages.orders import futile
from workers.messages.spec import ALL, AUTO, Budget, RunSpec


class Job(models.Model):
    """Any long work. `fence` grows with every claim: a write under an older one is refused.

    Before `lease_until` nobody else may claim it: while it runs that is its worker's lease, while it is queued the pause
    after an attempt that got nowhere, and `error` says why. `last_seq` is the last number given to an event or
    measurement; `fruitless` counts attempts, the present one included, since the last new measurement; `answered` says
    that this attempt gave its result; `queued` is since when it waits, or waited last; `started` is when the first
    attempt began, `claimed` the latest. `owner` is None for what the site does for itself, and of a network that was deleted.
    """

    class Task(models.TextChoices):
        INSPECT = "inspect"
        CONVERT = "convert"
        HARDWARE = "hardware"
        TUNE = "tune"
        COMPILE = "compile"
        BASELINE = "baseline"

    class Wanted(models.TextChoices):
        CONTINUE = "continue"
        PAUSE = "pause"
        STOP = "stop"
        KEEP = "keep"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="jobs", null=True, blank=True)
    task = models.CharField(max_length=12, choices=Task)
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED)
    wanted = models.CharField(max_length=12, choices=Wanted, default=Wanted.CONTINUE)
    attempt = models.PositiveIntegerField(default=0)
    fence = models.PositiveBigIntegerField(default=0)
    fruitless = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    last_seq = models.PositiveBigIntegerField(default=0)
    network = models.ForeignKey(Network, models.CASCADE, related_name="jobs", null=True, blank=True)
    target = models.ForeignKey(Target, models.CASCADE, related_name="jobs", null=True, blank=True)
    run = models.ForeignKey("TuningRun", models.CASCADE, related_name="compile_jobs", null=True, blank=True)
    answered = models.BooleanField(default=False)
    error = models.TextField(blank=True)
    next_step = models.TextField(blank=True)
    log = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    queued = models.DateTimeField(default=clock.now)
    started = models.DateTimeField(null=True, blank=True)
    claimed = models.DateTimeField(null=True, blank=True)
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created",)
        indexes = (
            models.Index(fields=("state", "lease_until"), name="job_by_lease"),
            # A row may hold a log, and of an account or a machine there are thousands: what a turn asks for is here, and the
            # newest of a machine's measurements of itself.
            models.Index(fields=("owner", "task", "claimed", "state"), name="job_by_turn"),
            models.Index(fields=("target", "task", "-created"), name="job_of_a_target"),
        )

    def __str__(self) -> str:
        return f"{self.task} {self.id}"

    @property
    def again(self) -> datetime | None:
        """Of a queued job that has to wait: until when."""
        return self.lease_until if self.state == State.QUEUED else None


class TuningRun(models.Model):
    """The Job that optimises a network on a target. Figures below `created` are kept by the journal (services.write).

    `shapes` (by input) and `machine` ({name, hardware, tvm, threads, peak_flops, bandwidth, versions}) are as they were when
    the run was asked for: what is chosen or measured later is for later runs. `reuse` starts it from what earlier runs found:
    `known_from` names them, each with the number of its last event then, once the first attempt has chosen them. `expected`
    is what was last told of the gain ahead: {gain, unknown: shares of the latency, seconds}.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    job = models.OneToOneField(Job, models.CASCADE, related_name="tuning_run")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="runs", null=True)
    network = models.ForeignKey(Network, models.CASCADE, related_name="runs")
    target = models.ForeignKey(Target, models.PROTECT, related_name="runs")
    shapes: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    machine: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    method = models.CharField(max_length=60)
    parts: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    operators_asked = models.CharField(max_length=200, default=ALL)
    layout = models.CharField(max_length=12, default=AUTO)
    seed = models.PositiveBigIntegerField(default=0)
    budget_seconds = models.FloatField(null=True, blank=True)
    budget_trials = models.PositiveIntegerField(null=True, blank=True)
    budget_latency = models.FloatField(null=True, blank=True)
    budget_gain = models.FloatField(null=True, blank=True)
    reuse = models.BooleanField(default=True)
    known_from: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    created = models.DateTimeField(auto_now_add=True)

    latency = models.FloatField(null=True, blank=True)
    trials = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    clock = models.FloatField(default=0.0)
    expected: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    spent: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    phase = models.TextField(blank=True)
    started_facts: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    finished_reason = models.CharField(max_length=20, blank=True)
    report: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    end_to_end: models.JSONField[Any, Any] = models.JSONField(default=list, blank=True)
    baselines: models.JSONField[Any, Any] = models.JSONField(default=list, blank=True)
    slots_count = models.PositiveIntegerField(default=0)
    slots_by_belief = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("-created",)

    def __str__(self) -> str:
        return f"{self.network} by {self.method}"

    @property
    def budget(self) -> Budget:
        return Budget(self.budget_seconds, self.budget_trials, self.budget_latency, self.budget_gain)

    @property
    def machine_name(self) -> str:
        """The target's then: the machine that it stands for may be another by now."""
        return str(self.machine.get("name") or self.target.name)

    @property
    def hardware(self) -> dict[str, Any]:
        """The target's then."""
        return dict(self.machine.get("hardware") or self.target.hardware)

    def pushed_out(self, state: str) -> list[Artifact]:
        """Its artifacts that another one of this state makes too many."""
        return list(self.artifacts.filter(state=state)[Artifact.KEPT - 1 :])

    def spec(self) -> str:
        """The order's RunSpec as JSON text."""
        return RunSpec(
            network=str(self.network.path),
            target=self.machine["tvm"],
            threads=self.machine["threads"],
            peak_flops=self.machine["peak_flops"],
            bandwidth=self.machine["bandwidth"],
            inputs=self.shapes,
            method=self.method,
            parts=self.parts,
            budget=self.budget,
            operators=self.operators_asked,
            layout=self.layout,
            seed=self.seed,
        ).to_json()


class Operator(models.Model):
    """One tunable tensor program of a run. `best_seconds` is of one call; it counts `weight` times. Of whole numbers `at_once`
    products take what one of float32 does.

    `knobs` are those of each sketch, by which its choices are read (messages.knobs; empty: never told), `space` says what
    the choices and times of its measurements mean (equal `key` and `space`: comparable), `known` how many points earlier
    runs gave, and `alike`, where they gave none, how many others with its knobs lend it theirs. `repeated` configurations made
    programs that were among the `trials`.
    """

    run = models.ForeignKey(TuningRun, models.CASCADE, related_name="operators", db_index=False)
    index = models.PositiveIntegerField()
    name = models.CharField(max_length=300)
    key = models.TextField()
    weight = models.FloatField()
    flops = models.FloatField()
    bytes = models.FloatField()
    work = models.FloatField()
    at_once = models.PositiveSmallIntegerField(default=1)
    configurations = models.FloatField()
    sketches: models.JSONField[Any, Any] = models.JSONField(default=list)
    knobs: models.JSONField[Any, Any] = models.JSONField(default=list, blank=True)
    space = models.CharField(max_length=64, blank=True)
    known = models.PositiveIntegerField(default=0)
    alike = models.PositiveIntegerField(default=0)
    best_seconds = models.FloatField(null=True, blank=True)
    trials = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    repeated = models.PositiveIntegerField(default=0)
    slots = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    last_rule = models.CharField(max_length=60, blank=True)
    last_terms: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("index",)
        constraints = (models.UniqueConstraint(fields=("run", "index"), name="operator_once"),)

    def __str__(self) -> str:
        return self.name

    @property
    def given_up(self) -> bool:
        """Whether none of it ran of enough that were tried: a library is made with its plain loops."""
        return self.best_seconds is None and futile(self.trials, self.configurations, self.repeated)


class Slot(models.Model):
    """Time that the scheduler gave to an operator; `began` and `ended` on the run's clock, and how long of that it `waited` for
    others' work."""

    run = models.ForeignKey(TuningRun, models.CASCADE, related_name="slots", db_index=False)
    seq = models.PositiveBigIntegerField()
    number = models.PositiveIntegerField()
    operator = models.PositiveIntegerField()
    began = models.FloatField()
    ended = models.FloatField()
    waited = models.FloatField(default=0.0)
    trials = models.PositiveIntegerField()
    before = models.FloatField(null=True, blank=True)
    after = models.FloatField(null=True, blank=True)
    rule = models.CharField(max_length=60)
    decision: models.JSONField[Any, Any] = models.JSONField(default=dict)
    latency = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="slot_once"),)

    def __str__(self) -> str:
        return f"slot {self.number}"


class Measurement(models.Model):
    """One configuration, built and timed; `seconds` is None where it failed, `cause` says why.

    `configuration` is the digest of sketch and the choices asked for; `asked` is kept where TVM made other `choices`.
    """

    run = models.ForeignKey(TuningRun, models.CASCADE, related_name="measurements", db_index=False)
    seq = models.PositiveBigIntegerField()
    operator = models.PositiveIntegerField()
    configuration = models.CharField(max_length=32)
    identity = models.TextField(blank=True)
    round = models.PositiveIntegerField(default=0)
    sketch = models.PositiveIntegerField()
    choices: models.JSONField[Any, Any] = models.JSONField()
    asked: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    spread = models.FloatField(default=0.0)
    runs = models.PositiveIntegerField(default=0)
    stopped = models.CharField(max_length=20, blank=True)
    cause = models.CharField(max_length=20, blank=True)
    error = models.TextField(blank=True)
    build_seconds = models.FloatField(default=0.0)
    measure_seconds = models.FloatField(default=0.0)
    origin = models.CharField(max_length=40, blank=True)
    clock = models.FloatField()
    slot = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("seq",)
        indexes = (
            # For the best of an operator, which a second round of a measurement may change.
            models.Index(fields=("run", "operator", "seconds"), name="measurement_by_speed"),
            # An operator's in order, and its newest, of which each later run of its network asks for some.
            models.Index(fields=("run", "operator", "seq"), name="measurement_of_operator"),
        )
        constraints = (
            models.UniqueConstraint(fields=("run", "seq"), name="measurement_by_seq"),
            models.UniqueConstraint(fields=("run", "operator", "configuration", "round"), name="measurement_once"),
        )

    def __str__(self) -> str:
        return f"measurement {self.seq}"


class Event(models.Model):
    """What the page is told, as it is told. `digest` is of the event as the child sent it, under its fence."""

    run = models.ForeignKey(TuningRun, models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=20)
    clock = models.FloatField(default=0.0)
    payload: models.JSONField[Any, Any] = models.JSONField()
    digest = models.CharField(max_length=32)

    class Meta:
        ordering = ("seq",)
        constraints = (
            models.UniqueConstraint(fields=("run", "seq"), name="event_by_seq"),
            models.UniqueConstraint(fields=("run", "digest"), name="event_once"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"


class Checkpoint(models.Model):
    """The pipeline's latest state: what a new attempt starts from."""

    run = models.OneToOneField(TuningRun, models.CASCADE, related_name="checkpoint")
    state = models.BinaryField()

    def __str__(self) -> str:
        return f"checkpoint of {self.run_id}"

    @staticmethod
    def packed(state: Any) -> bytes:
        return zlib.compress(json.dumps(state, separators=(",", ":")).encode(), 1)

    def unpacked(self) -> Any:
        return json.loads(zlib.decompress(bytes(self.state)))


class Artifact(models.Model):
    """A compiled library, run against the reference. Only a `ready` one has a file.

    Of a run the newest `KEPT` of each state are kept.
    """

    KEPT = 5

    class State(models.TextChoices):
        READY = "ready"
        REJECTED = "rejected"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(TuningRun, models.CASCADE, related_name="artifacts")
    job = models.OneToOneField(Job, models.CASCADE, related_name="artifact")
    sha256 = models.CharField(max_length=64, blank=True)
    size = models.BigIntegerField(default=0)
    state = models.CharField(max_length=12, choices=State)
    verdict: models.JSONField[Any, Any] = models.JSONField(default=dict)
    latency: models.JSONField[Any, Any] = models.JSONField(default=dict)
    onnxruntime: models.JSONField[Any, Any] = models.JSONField(default=dict)
    ratio = models.FloatField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created",)

    def __str__(self) -> str:
        return f"artifact {self.id}"

    @property
    def path(self) -> Path:
        return Path(settings.DATA_DIR) / "artifacts" / f"{self.sha256}.zip"


class Outbox(models.Model):
    """A message that belongs to a change of a job: written with it, sent after it."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="outbox")
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("pk",)
        indexes = (models.Index(fields=("sent_at",), name="outbox_unsent"),)

    def __str__(self) -> str:
        return f"message of {self.job_id}"
