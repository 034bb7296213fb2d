"""`manage.py run UUID pause|resume|stop|keep|artifact`: what the buttons of a run's page do."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import CommandError, CommandParser

from apps.operations.site_command import SiteCommand
from apps.tuning import services
from apps.tuning.models import TuningRun

WORDS = ("pause", "resume", "stop", "keep", "artifact")


class Command(SiteCommand):
    help = "Pauses, resumes or stops a run of the site; keep stops it and compiles the best, artifact compiles the best so far."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=uuid.UUID, help="the run's id, as in the address of its page")
        parser.add_argument("word", choices=WORDS)

    def handle(self, *args: Any, **options: Any) -> None:
        run = TuningRun.objects.select_related("job", "owner").filter(pk=options["run"]).exclude(owner=None).first()
        if run is None:
            raise CommandError(f"{options['run']}: there is no such run; its id stands in the address of its page")
        if options["word"] == "artifact":
            services.request_artifact(run, run.owner)
        else:
            services.request(run, run.owner, options["word"])
        run.job.refresh_from_db()
        self.stdout.write(f"{run.pk}: {run.job.state}")
