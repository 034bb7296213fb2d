"""What a job printed."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.html import escape
from django.views.decorators.http import require_GET

from apps.tuning import services
from apps.tuning.models import Job


@require_GET
def log(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The end of what the last attempt's process printed, as HTML's text: for the job's owner, and of a measurement of the
    machine for whom it is to ask for one.
    """
    machines = Q(task=Job.Task.HARDWARE)
    theirs = Q(owner_id=request.user.pk) & ~machines
    found = Job.objects.filter(theirs | machines if services.may_remeasure(request.user) else theirs, pk=pk).first()
    if found is None:
        raise Http404
    return HttpResponse(escape(found.log or "Nothing was printed."), content_type="text/html; charset=utf-8")
