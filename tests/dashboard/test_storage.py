"""An account sees what it keeps, is refused in time, and makes room by itself."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.catalog.models import Network
from apps.dashboard import humans, uploads
from apps.dashboard.views import storage
from apps.tuning import quota, services
from apps.tuning.models import Artifact, Job, TuningRun
from tests.apps.rows import Site
from tests.apps.threads import in_threads

TROUBLE = '<div role="alert" data-part="told">'
SCRIPT = {"X-Requested-With": "XMLHttpRequest"}


def library(run: TuningRun, size: int = 100) -> Artifact:
    job = Job.objects.create(task="compile", owner=run.owner, run=run, network=run.network, state="done")
    return Artifact.objects.create(run=run, job=job, sha256="b" * 64, size=size, state="ready", ratio=1.0)


def judged(client: Client, length: int) -> tuple[Any, Any]:
    """In a thread, as the server asks it."""
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    return in_threads(1, lambda _: uploads.judged(session, length))[0]


@pytest.mark.django_db(transaction=True)
def test_an_upload_is_judged_by_who_sends_it_and_how_much_follows(site: Site, ada: Client, settings: Any) -> None:
    settings.QUOTA = 1_000_005
    assert judged(ada, 1_000_000 + settings.UPLOAD_FORM) == (site.ada.pk, None)
    account, refusal = judged(ada, 1_200_000)
    assert account == site.ada.pk
    words = r"this upload: it has 1\.13 MB, and 5 B of your 1\.00 MB are in use\. Next step: delete on"
    assert re.match(words, refusal.sentence)
    site.ada.is_active = False
    site.ada.save()
    assert judged(ada, 1) == (None, None)
    ada.cookies[settings.SESSION_COOKIE_NAME] = "made up"
    assert judged(ada, 1) == (None, None)


@pytest.mark.mutation
@pytest.mark.django_db(transaction=True)
def test_an_account_that_is_not_counted_is_noticed(
    site: Site, ada: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.QUOTA = 1_000_005
    monkeypatch.setattr(quota, "check", lambda *_: None)
    assert judged(ada, 1_200_000) == (site.ada.pk, None)


LONG = "a." + "x" * 250
"""Temporary files get their upload's ending."""


def test_a_file_that_the_disk_does_not_take_is_explained(site: Site, ada: Client, settings: Any) -> None:
    words = ada.post("/networks/", {"file": SimpleUploadedFile(LONG, b"x")}, headers=SCRIPT).json()["error"]
    assert words.startswith("this upload: it cannot be taken (File name too long). Next step: give the file a shorter")
    page = ada.post("/networks/", {"file": SimpleUploadedFile(LONG, b"x")}, follow=True)
    assert "File name too long" in page.content.decode()
    assert Client().post("/login/", {"file": SimpleUploadedFile(LONG, b"x")}).status_code == 302
    settings.FILE_UPLOAD_TEMP_DIR = settings.DATA_DIR / "nowhere"
    answer = ada.post("/networks/", {"file": SimpleUploadedFile("a.onnx", b"x")}, headers=SCRIPT)
    assert answer.status_code == 400
    assert "make room on the server" in answer.json()["error"]
    assert Network.objects.count() == 1


@pytest.mark.mutation
def test_forms_that_are_first_taken_apart_by_the_check_of_their_tokens_are_noticed(
    site: Site, ada: Client, settings: Any
) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if not name.endswith("UnkeptFiles")]
    with pytest.raises(OSError, match="File name too long"):
        ada.post("/networks/", {"file": SimpleUploadedFile(LONG, b"x")})


def test_a_full_account_may_still_ask_for_what_is_small(site: Site, ada: Client, settings: Any) -> None:
    """To make room above all; and who is nobody is sent to sign in."""
    settings.QUOTA = 5
    assert ada.post(reverse("delete-network", args=[site.network.pk])).status_code == 302
    assert not site.ada.networks.exists()
    assert Client().post("/networks/", {"x": "y" * (settings.UPLOAD_FORM // 2)})["Location"].startswith("/login/")


def test_the_files_own_size_counts_where_the_request_said_little(site: Site, ada: Client, settings: Any) -> None:
    settings.QUOTA = 100
    file = SimpleUploadedFile("net.onnx", b"x" * 96)
    answer = ada.post("/networks/", {"file": file}, headers=SCRIPT)
    assert answer.status_code == 507
    assert answer.json()["error"].startswith("net.onnx: it has 96 B, and 5 B of your 100 B are in use. Next step: ")
    fits = SimpleUploadedFile("net.onnx", b"x" * 95)
    assert ada.post("/networks/", {"file": fits}, headers=SCRIPT).status_code == 200
    settings.UPLOAD_LIMIT = 50
    fits.seek(0)
    assert ada.post("/networks/", {"file": fits}, headers=SCRIPT).status_code == 413


def test_what_is_in_use_is_shown(site: Site, ada: Client, bob: Client, settings: Any) -> None:
    settings.QUOTA = 1_000_000
    library(site.run(), 600_000)
    for address in ("/networks/", "/storage/"):
        assert "600 kB of your 1.00 MB are in use" in ada.get(address).content.decode()
        assert "0 B of your 1.00 MB are in use" in bob.get(address).content.decode()
    assert 'data-room="399995"' in ada.get("/networks/").content.decode()


def test_what_one_network_may_take_is_shown_before_it_is_sent(site: Site, ada: Client, settings: Any) -> None:
    settings.UPLOAD_LIMIT = 1_500_000
    page = ada.get("/networks/").content.decode()
    assert "<b>choose one</b>, up to 1.50 MB</label>" in page
    assert 'data-limit="1500000"' in page
    assert "raise UPLOAD_LIMIT" in page
    settings.UPLOAD_LIMIT = settings.LARGEST_NETWORK
    assert "raise UPLOAD_LIMIT" not in ada.get("/networks/").content.decode()


def test_the_storage_page_lists_what_can_be_deleted(site: Site, ada: Client, bob: Client) -> None:
    run = site.run()
    made = library(run)
    page = ada.get("/storage/").content.decode()
    assert reverse("delete-network", args=[site.network.pk]) not in page
    stop = f'<a href="{reverse("run", args=[run.pk])}">its run of {humans.moment(run.created)}</a>'
    assert f"It cannot be deleted while something works on it. First are to end: {stop}." in page
    services.request(run, site.ada, "stop")
    page = ada.get("/storage/").content.decode()
    for name, key in (("delete-network", site.network.pk), ("delete-library", made.pk)):
        assert reverse(name, args=[key]) in page
    assert "Its 1 run, their logs" in page
    assert reverse("run", args=[run.pk]) in page
    assert "while it is tuned" not in page
    others = bob.get("/storage/").content.decode()
    assert "squeezenet" not in others
    assert others.count("None yet.") == 2


def test_a_long_list_of_what_is_kept_has_pages_the_largest_first(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "PAGE", 2)
    Network.objects.bulk_create(
        Network(owner=site.ada, name=f"of {size} B", sha256=f"{size:064x}", size=size, state="ready") for size in (7, 8)
    )
    made = [library(site.run(), size).pk for size in (300, 100, 200)]

    def listed(address: str) -> tuple[list[str], list[Any]]:
        page = ada.get(address).content.decode()
        names, _, libraries = page.partition('id="libraries-title"')
        return re.findall(r'class="name" href="[^"]+">([^<]+)', names), [key for key in made if str(key) in libraries]

    assert listed("/storage/") == (["of 8 B", "of 7 B"], [made[0], made[2]])
    assert listed("/storage/?networks=2") == (["squeezenet"], [made[0], made[2]])
    assert listed("/storage/?libraries=2") == (["of 8 B", "of 7 B"], [made[1]])
    page = ada.get("/storage/?libraries=2").content.decode()
    assert '<a href="?libraries=2&amp;networks=2">Smaller</a>' in page, "the other list stays where it is"
    assert '<a href="?networks=1&amp;libraries=1">Larger</a>' in page
    address = f"{reverse('delete-library', args=[made[1]])}?libraries=2"
    assert f'action="{address}"' in page
    assert ada.post(f"{address}&networks=x&other=3")["Location"] == "/storage/?libraries=2", "where the button was"
    address = reverse("delete-network", args=[site.network.pk])
    assert ada.post(f"{address}?networks=2")["Location"] == "/storage/?networks=2"


def test_a_rejected_network_is_deleted_on_its_page(site: Site, ada: Client) -> None:
    """It does not count, and is not on the Storage page."""
    Network.objects.update(state="rejected", error="odd", next_step="export again")
    address = reverse("delete-network", args=[site.network.pk])
    assert address not in ada.get("/storage/").content.decode()
    assert f'action="{address}"' in ada.get(reverse("network", args=[site.network.pk])).content.decode()
    assert ada.post(address)["Location"] == "/networks/"
    assert not site.ada.networks.exists()


def test_somebody_elses_things_cannot_be_deleted(site: Site, ada: Client, bob: Client) -> None:
    made = library(site.run())
    for address in (reverse("delete-network", args=[site.network.pk]), reverse("delete-library", args=[made.pk])):
        assert bob.post(address)["Location"] == "/storage/", "as for what is not there"
        assert ada.get(address).status_code == 405
        assert Client().post(address)["Location"].startswith("/login/")
    assert (Network.objects.count(), Artifact.objects.count()) == (1, 1)


def test_deleting_leads_back_and_says_what_stands_in_the_way(site: Site, ada: Client) -> None:
    run = site.run()
    made = library(run)
    answer = ada.post(reverse("delete-network", args=[site.network.pk]), follow=True)
    assert "squeezenet: something waits or works on it. Next step: stop its runs" in answer.content.decode()
    assert ada.post(reverse("delete-library", args=[made.pk]))["Location"] == "/storage/"
    assert not Artifact.objects.exists()
    Job.objects.update(state="done")
    ada.post(reverse("delete-network", args=[site.network.pk]))
    assert not site.ada.runs.exists()
    # The second click of two finds nothing, and the browser shows what that one is told.
    for address in (reverse("delete-network", args=[site.network.pk]), reverse("delete-library", args=[made.pk])):
        assert ada.post(address)["Location"] == "/storage/"


def test_a_library_there_is_no_room_for_is_said_where_it_was_asked_for(site: Site, ada: Client, settings: Any) -> None:
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5)])
    settings.QUOTA = 5
    address = reverse("compile", args=[run.pk])
    answer = ada.post(address, headers={"HX-Request": "true", "HX-Target": "downloads"}).content.decode()
    assert 'role="alert"' in answer
    assert "5 B of your 5 B are in use. Next step: delete on the Storage page" in answer
    assert 'role="alert"' not in ada.get(reverse("run", args=[run.pk])).content.decode().replace(TROUBLE, "")
    assert "are in use" in ada.post(address, follow=True).content.decode()


def test_a_library_that_could_not_be_kept_is_said_beside_the_earlier_ones(site: Site, ada: Client) -> None:
    run, held, told = site.claimed(1)
    services.write(held, [told.batch(0.5)])
    library(run)
    compiling = services.claim(services.request_artifact(run, site.ada).pk)
    assert compiling is not None
    quota_of_none = {"answered": True, "error": "there is no room for it: it has 9 B", "next_step": "delete something"}
    Job.objects.filter(pk=compiling.job_id).update(**quota_of_none)
    assert services.conclude(compiling, "finished") == "failed"
    page = ada.get(reverse("run", args=[run.pk])).content.decode()
    assert "there is no room for it: it has 9 B. Next step: delete something" in page
    assert "Compile the best so far" in page
    services.request_artifact(run, site.ada)
    part = ada.get(reverse("downloads", args=[run.pk]), headers={"HX-Request": "true"}).content.decode()
    assert "there is no room" not in part


def test_libraries_of_a_network_are_told_apart_by_their_names_and_by_what_is_asked(site: Site, ada: Client) -> None:
    made = [library(site.run()), library(site.run(method="random"))]
    for number, one in enumerate(made):
        Artifact.objects.filter(pk=one.pk).update(
            created=datetime(2026, 3, number + 1, 9, 5, tzinfo=UTC), latency={"median": 2.5e-3}
        )
        one.path.parent.mkdir(parents=True, exist_ok=True)
        one.path.write_bytes(b"zip")
    names = []
    for one in made:
        answer = ada.get(reverse("artifact", args=[one.pk]))
        assert b"".join(answer) == b"zip"
        names += re.findall(r'"(.*)"', answer["Content-Disposition"])
    assert names == ["squeezenet-a-machine-auto-2026-03-01-0905.zip", "squeezenet-a-machine-random-2026-03-02-0905.zip"]
    page = ada.get("/storage/").content.decode()
    for day in ("1", "2"):
        assert f"The library of squeezenet that was compiled on {day} March 2026, 09:05 UTC and takes 2.50 ms." in page
        assert f'aria-label="Delete the library of squeezenet of {day} March 2026, 09:05 UTC"' in page


def test_a_network_of_which_something_is_compiled_says_where_that_is_stopped(site: Site, ada: Client) -> None:
    run = site.run()
    Job.objects.filter(run=run).update(state="done")
    Job.objects.filter(pk=run.job_id).update(state="done")
    Job.objects.create(task="compile", owner=run.owner, run=run, network=run.network, state="running")
    page = ada.get(reverse("storage")).content.decode()
    assert "First are to end: what is compiled or compared of <a href" in page
    assert f"Delete {run.network.name}</button>" not in page
