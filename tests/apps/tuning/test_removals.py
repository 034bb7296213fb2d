"""What users delete while something else happens to it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models.signals import pre_delete

from apps.catalog.models import Network
from apps.tuning import services
from apps.tuning.models import TuningRun
from tests.apps.rows import Site
from tests.apps.threads import in_threads


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_a_network_whose_run_is_started_while_it_is_deleted_stays() -> None:
    """PostgreSQL finds out when all of it is deleted and that is to be committed."""
    site = Site()

    def start(**_: Any) -> None:
        in_threads(1, lambda _: site.run())

    pre_delete.connect(start, sender=Network)
    try:
        with pytest.raises(services.Refused, match="something was just started on it"):
            services.remove_network(site.network, site.ada)
    finally:
        pre_delete.disconnect(start, sender=Network)
    assert TuningRun.objects.get().network == site.network
