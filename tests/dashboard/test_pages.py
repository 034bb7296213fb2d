"""Every page: there for its owner, absent for others, and safe."""

from __future__ import annotations

import html
import re
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.catalog import examples
from apps.catalog.models import Network, Target
from apps.core import clock, protection, signin
from apps.core.pace import Pace
from apps.core.protection import Protection
from apps.dashboard import paces
from apps.dashboard.forms import AWAY, GONE
from apps.dashboard.views import home
from apps.operations import doctor
from apps.tuning import orders, services
from apps.tuning.live import snapshot
from apps.tuning.models import Artifact, Job, TuningRun
from tests.apps.rows import Site, Told
from workers.engine.methods import method
from workers.messages.spec import Budget, RunSpec
from workers.networks.examples import EXAMPLES

RUN_PAGES = ("run", "snapshot", "downloads")
EXAMPLES_OFFERED = re.compile('<select id="example".*?</select>')
INLINE = re.compile(
    r"<script(?![^>]*\bsrc=)(?![^>]*application/json)|<style|\sstyle=|\son\w+=|javascript:", re.IGNORECASE
)


@pytest.fixture
def told(site: Site) -> TuningRun:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004, None), told.batch(0.003, operator=1), told.slot(0), told.slot(1)])
    run.refresh_from_db()
    return run


FILES = ("log.jsonl", "measurements.csv", "slots.csv", "report.html")


def addresses(site: Site, run: TuningRun) -> list[str]:
    pages = [reverse(name, args=[run.pk]) for name in RUN_PAGES]
    files = [reverse("run-file", args=[run.pk, name]) for name in FILES]
    network = [reverse(name, args=[site.network.pk]) for name in ("network", "network-state", "compared", "example")]
    operator = [reverse(name, args=[run.pk, 0]) for name in ("operator", "operator-table")]
    return [*pages, *operator, *files, *network]


def test_everything_is_there_for_its_owner(site: Site, ada: Client, told: TuningRun) -> None:
    for address in ["/", "/networks/", "/storage/", "/targets/", "/runs/new", *addresses(site, told)]:
        assert ada.get(address, follow=True).status_code == 200, address


@pytest.mark.parametrize("name", ["home", "network"])
def test_runs_are_shown_as_they_are_without_a_reload(site: Site, ada: Client, told: TuningRun, name: str) -> None:
    address = reverse(name, args=[] if name == "home" else [site.network.pk])
    for state, often in (("running", "4s"), ("done", "60s")):
        Job.objects.filter(pk=told.job_id).update(state=state)
        page = ada.get(address).content.decode()
        assert re.findall(r'id="rows" hx-get="([^"]*)" hx-trigger="every (\w+),', page) == [(address, often)]


def test_a_network_that_is_being_read_is_asked_for_again(site: Site, ada: Client) -> None:
    assert 'id="list" hx-get' not in ada.get("/networks/").content.decode()
    Network.objects.update(state="inspecting")
    assert 'id="list" hx-get="/networks/" hx-trigger="every 4s"' in ada.get("/networks/").content.decode()


def test_networks_of_one_name_are_told_apart_where_one_is_chosen(site: Site, ada: Client) -> None:
    def offered() -> list[str]:
        return re.findall(r"<option[^>]*>\s*(squeezenet[^<]*?)\s*</option>", ada.get("/runs/new").content.decode())

    assert offered() == ["squeezenet"]
    Network.objects.create(owner=site.bob, name="squeezenet", sha256="c" * 64, size=5, state="ready")
    assert offered() == ["squeezenet"]  # another's is none of hers
    Network.objects.create(owner=site.ada, name="squeezenet", sha256="b" * 64, size=6, state="ready")
    assert {one[-10:] for one in offered()} == {", aaaaaaaa", ", bbbbbbbb"}
    assert all(re.fullmatch(r"squeezenet, of \d+ \w+ \d{4}, \d\d:\d\d UTC, [ab]{8}", one) for one in offered())


def test_what_is_somebody_elses_is_not_there(site: Site, bob: Client, told: TuningRun) -> None:
    for address in addresses(site, told):
        assert bob.get(address).status_code == 404, address
    for address in (reverse("ask", args=[told.pk, "stop"]), reverse("compile", args=[told.pk])):
        assert bob.post(address).status_code == 404, address
    assert bob.post(reverse("network", args=[site.network.pk]), {}).status_code == 404
    assert bob.post(reverse("example-run", args=[site.network.pk])).status_code == 404
    told.job.refresh_from_db()
    assert told.job.state == "running"


def test_somebody_elses_things_are_in_no_list(site: Site, bob: Client, told: TuningRun) -> None:
    for address in ("/", "/networks/", "/runs/new"):
        page = re.sub(EXAMPLES_OFFERED, "", bob.get(address).content.decode().lower())
        assert "squeezenet" not in page.replace("squeezenet with", "")


def test_strangers_are_sent_to_sign_in(site: Site, told: TuningRun) -> None:
    for address in ["/", "/networks/", "/storage/", "/targets/", "/runs/new", *addresses(site, told)]:
        answer = Client().get(address)
        assert answer.status_code == 302, address
        assert answer["Location"].startswith("/login/")


def test_pages_have_no_inline_code_and_a_strict_policy(site: Site, ada: Client, told: TuningRun) -> None:
    pages = [
        "/",
        "/networks/",
        "/storage/",
        "/targets/",
        "/runs/new",
        *addresses(site, told)[:1],
        reverse("operator", args=[told.pk, 0]),
        reverse("network", args=[site.network.pk]),
    ]
    for address in pages:
        answer = ada.get(address)
        policy = answer["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert not INLINE.search(answer.content.decode()), address


def test_a_name_cannot_break_out_of_a_page(site: Site, ada: Client) -> None:
    Network.objects.filter(pk=site.network.pk).update(name="</script><script>alert(1)</script>")
    run = site.run()
    for address in ("/", reverse("run", args=[run.pk]), reverse("network", args=[site.network.pk]), "/runs/new"):
        assert "<script>alert" not in ada.get(address).content.decode(), address


@pytest.mark.parametrize(
    "form",
    [
        {}, {"network": "x"}, {"network": "\x00"}, {"minutes": "nan"}, {"minutes": "inf"}, {"minutes": "-1"},
        {"trials": "9" * 400}, {"latency": "1e400"}, {"seed": "-3"}, {"seed": str(1 << 64)}, {"layout": "XYZ"},
        {"operators": "some"}, {"method": "none such"}, {"target": "1"}, {"minutes": "", "trials": "", "latency": ""},
        {"gain": "0"}, {"gain": "100"}, {"gain": "-1"}, {"gain": "nan"},
        {"scheduler": "oracle"}, {"explorer": "none such"}, {"cost_model": "none"}, {"method": "adatune", "explorer": "random"},
    ],
)  # fmt: skip
def test_a_bad_form_is_explained_and_starts_nothing(site: Site, ada: Client, form: dict[str, str]) -> None:
    good = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": "3"}
    answer = ada.post("/runs/new", {**good, **form} if form else {})
    assert answer.status_code == 200
    assert re.search(r'class="error"|role="alert"', answer.content.decode())
    assert not TuningRun.objects.exists()


def test_a_form_whose_network_or_target_is_gone_says_that_another_is_chosen_now(site: Site, ada: Client) -> None:
    gone = {"network": GONE, "target": AWAY}
    form = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": "3"}
    for name, said in gone.items():
        page = ada.post("/runs/new", {**form, name: "00000000-0000-4000-8000-000000000000"}).content.decode()
        assert f'<span class="error" id="error_{name}">{said}</span>' in page
    assert not TuningRun.objects.exists()


def test_a_run_has_the_sizes_that_its_form_showed(site: Site, ada: Client) -> None:
    dynamic = [{"input": "x", "axis": 0, "symbol": "N"}]
    inspection = {"inputs": [{"name": "x", "dtype": "float32", "shape": ["N", 3]}], "dynamic": dynamic}
    Network.objects.update(inspection=inspection, shapes={"x": [8, 3]})
    form = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": "3"}
    page = ada.get("/runs/new").content.decode()
    Network.objects.update(shapes={"x": [16, 3]})  # on another page
    for word in ("squeezenet: its sizes were changed meanwhile; look again", None):
        (sizes,) = re.findall(r'name="sizes" value="([^"]*)"', page)
        page = ada.post("/runs/new", form | {"sizes": sizes}).content.decode()
        assert TuningRun.objects.exists() is (word is None)
        if word:
            assert word in page
            assert "squeezenet, x 16x3</option>" in page
    assert TuningRun.objects.get().shapes == {"x": [16, 3]}


def test_a_run_for_a_device_is_tuned_further_for_it(site: Site, ada: Client) -> None:
    board = Target.objects.create(
        kind="device", name="a board", host="10.0.0.7", port=9190, key="k" * 32, state="ready"
    )
    page = ada.get(f"/runs/new?network={site.network.pk}&target={board.pk}").content.decode()
    assert f'<option value="{board.pk}" selected>a board</option>' in page
    assert ada.get("/runs/new?target=%00").status_code == 200


def test_one_click_starts_a_run(site: Site, ada: Client) -> None:
    page = ada.get(f"/runs/new?network={site.network.pk}").content.decode()
    assert "Start tuning" in page
    answer = ada.post(
        "/runs/new", {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": "10"}
    )
    run = TuningRun.objects.get()
    assert answer["Location"] == reverse("run", args=[run.pk])
    assert (run.budget_seconds, run.owner, run.job.state) == (600.0, site.ada, "queued")


def test_parts_are_put_together_and_said_wherever_the_run_is(site: Site, ada: Client) -> None:
    page = ada.get("/runs/new").content.decode()
    assert '<details class="field"><summary>Parts</summary>' in page
    assert "In turn (round_robin)" in page
    assert "(oracle)" not in page
    form = {"network": site.network.pk, "target": site.target.pk, "method": "dynatune", "minutes": "3"}
    chosen = {
        "scheduler": "round_robin",
        "explorer": "simulated_annealing",
        "sampler": "",
        "cost_model": "random_forest",
    }
    ada.post("/runs/new", form | chosen)
    run = TuningRun.objects.get()
    assert run.parts == {"scheduler": "round_robin", "cost_model": "random_forest"}  # the explorer is the method's own
    assert RunSpec.from_json(run.spec()).parts == run.parts
    title = "DynaTune with scheduler round_robin and cost model random_forest"
    for address in ("/", reverse("run", args=[run.pk]), reverse("run-file", args=[run.pk, "report.html"])):
        assert title in ada.get(address).getvalue().decode(), address


def test_parts_that_do_not_fit_are_refused_in_the_engine_s_words_and_stay_chosen(site: Site, ada: Client) -> None:
    form = {"network": site.network.pk, "target": site.target.pk, "method": "adatune", "minutes": "3"}
    page = html.unescape(ada.post("/runs/new", {**form, "cost_model": "xgboost"}).content.decode())
    assert (
        "These parts do not fit together: the contextual optimizer asks how sure the cost model is, and 'xgboost' does not "
        "tell; choose cost_model random_forest, or a method that scores by the mean." in page
    )
    assert '<details class="field" open><summary>Parts</summary>' in page
    assert '<option value="xgboost" selected>Boosted trees (xgboost)</option>' in page
    assert not TuningRun.objects.exists()


def test_a_run_of_parts_that_are_refused_now_is_shown_and_compared_and_goes_on(
    site: Site, ada: Client, tmp_path: Path
) -> None:
    """An earlier version made it."""
    asked = {"network": site.network.pk, "target": site.target.pk, "method": "chameleon", "minutes": "3"}
    page = html.unescape(ada.post("/runs/new", {**asked, "explorer": "metaschedule"}).content.decode())
    assert "it would not ask sampler 'adaptive'; choose sampler greedy" in page
    assert not TuningRun.objects.exists()
    run = site.run(method="chameleon", parts={"explorer": "metaschedule"})
    held, told = services.claim(run.job_id), Told(1)
    assert held is not None
    services.write(held, [*told.start(), told.batch(0.5), told.slot() | {"latency": 0.5}])
    services.conclude(held, "paused")
    shown = [reverse("run", args=[run.pk]), reverse("run-file", args=[run.pk, "report.html"])]
    for address in ("/", *shown, reverse("compared", args=[site.network.pk])):
        assert "Chameleon with explorer metaschedule" in ada.get(address).getvalue().decode(), address
    services.request(run, site.ada, "resume")
    spec = RunSpec.from_json(orders.order(run.job_id, "tune", tmp_path / "work")["spec"])
    assert method(spec.method, spec.parts, stored=True).explorer == "metaschedule"


def test_a_run_of_convolutions_and_dense_layers_only_says_so_where_its_method_is_said(site: Site, ada: Client) -> None:
    assert "<summary>Seed, layout and operators</summary>" in ada.get("/runs/new").content.decode()
    form = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": "3"}
    ada.post("/runs/new", form | {"operators": "compute"})
    run = TuningRun.objects.get()
    assert run.operators_asked == RunSpec.from_json(run.spec()).operators == "compute"
    page, report = told_of(ada, run)
    assert "<span>tunes convolutions and matrix products only</span>" in page
    assert "layout auto, tunes convolutions and matrix products only, seed 0" in page
    assert "(auto), convolutions and matrix products only; waiting" in report
    assert "<dt>Operators tuned</dt><dd>convolutions and matrix products only</dd>" in report


def test_of_a_run_of_all_operators_nothing_is_said_of_which(site: Site, ada: Client) -> None:
    form = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": "3"}
    ada.post("/runs/new", form)
    run = TuningRun.objects.get()
    assert (run.operators_asked, run.layout) == ("all", "auto")
    for page in told_of(ada, run):
        assert "matrix products" not in page
        assert "Operators tuned" not in page


def told_of(client: Client, run: TuningRun) -> tuple[str, str]:
    """Its page and its report."""
    report = client.get(reverse("run-file", args=[run.pk, "report.html"])).getvalue().decode()
    return client.get(reverse("run", args=[run.pk])).content.decode(), report


@pytest.mark.parametrize("rare", [{"seed": "7"}, {"seed": "-3"}, {"layout": "NCHW"}, {"operators": "compute"}])
def test_what_was_set_out_of_sight_is_shown_where_a_form_comes_back(
    site: Site, ada: Client, rare: dict[str, str]
) -> None:
    form = {"network": site.network.pk, "target": site.target.pk, "method": "none such", "minutes": "3"}
    shut, open_ = (
        f'<details class="field"{how}><summary>Seed, layout and operators</summary>' for how in ("", " open")
    )
    assert shut in ada.post("/runs/new", {**form, "seed": "0", "layout": "auto", "operators": "all"}).content.decode()
    assert open_ in ada.post("/runs/new", {**form, **rare}).content.decode()


def test_a_target_latency_is_said_to_be_of_the_operators(site: Site, ada: Client) -> None:
    page = ada.get("/runs/new").content.decode()
    assert 'for="id_latency">Target latency in ms, sum of operators</label>' in page
    assert "the whole network takes somewhat longer, which its library tells" in page
    run = site.run()
    Job.objects.filter(pk=run.job_id).update(state="done")
    TuningRun.objects.update(finished_reason="target")
    assert all("done: the sum of operators is at the target latency" in page for page in told_of(ada, run))


def test_a_small_gain_is_a_limit_of_its_own(site: Site, ada: Client) -> None:
    form = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": "", "gain": "1"}
    ada.post("/runs/new", form)
    run = TuningRun.objects.get()
    assert (run.budget, run.finished_reason) == (Budget(min_gain=0.01), "")
    assert RunSpec.from_json(run.spec()).budget == run.budget
    assert snapshot(run)["run"]["budget"]["gain"] == 0.01


def test_an_address_without_a_page_says_where_to_look(site: Site, ada: Client) -> None:
    for client, address in ((ada, "/nothing/"), (Client(), "/nothing/"), (ada, f"/runs/{uuid.uuid4()}/")):
        answer = client.get(address)
        assert answer.status_code == 404
        page = answer.content.decode()
        assert "There is nothing here" in page
        assert 'href="/networks/"' in page
    assert "Sign out" in ada.get("/nothing/").content.decode()


def test_a_form_of_an_old_page_says_what_to_do(site: Site) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(site.ada)
    answer = client.post(reverse("start-example"))
    assert answer.status_code == 403
    assert "reload the page and try again" in answer.content.decode()


def test_what_breaks_says_so_on_a_page_like_the_others(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a secret of the server")

    monkeypatch.setattr(home.figures, "rows", broken)
    ada.raise_request_exception = False
    answer = ada.get("/")
    assert answer.status_code == 500
    page = answer.content.decode()
    assert "Something broke" in page
    assert "Skip to the content" in page
    assert "secret" not in page


def test_runs_that_differ_in_nothing_else_are_told_apart_by_their_age(site: Site, ada: Client) -> None:
    old, _ = site.run(), site.run()
    TuningRun.objects.filter(pk=old.pk).update(created=clock.now() - timedelta(hours=3, minutes=5))
    page = ada.get("/").content.decode()
    assert ", just now</span>" in page
    assert ", 3 h ago</span>" in page


def test_the_end_of_the_log_is_its_owners_and_harmless(site: Site, ada: Client, bob: Client, told: TuningRun) -> None:
    address = reverse("job-log", args=[told.job_id])
    assert ada.get(address).content == b"Nothing was printed."
    Job.objects.filter(pk=told.job_id).update(log="<script>alert(1)</script>")
    assert ada.get(address).content == b"&lt;script&gt;alert(1)&lt;/script&gt;"
    assert bob.get(address).status_code == 404
    assert Client().get(address)["Location"].startswith("/login/")


def test_odd_addresses_are_no_faults(ada: Client) -> None:
    for address in (
        "/runs/new?network=%00",
        "/?page=zzz",
        "/?page=-4",
        f"/runs/{uuid.uuid4()}/",
        "/runs/1/",
        "/networks/%00/",
    ):
        assert ada.get(address).status_code in (200, 404), address
    assert ada.post(f"/targets/{uuid.uuid4()}/measure").status_code == 404


def test_the_buttons_ask_for_what_they_say(site: Site, ada: Client, told: TuningRun) -> None:
    ada.post(reverse("ask", args=[told.pk, "pause"]))
    assert Job.objects.get(pk=told.job_id).wanted == "pause"
    ada.post(reverse("ask", args=[told.pk, "resume"]))
    assert Job.objects.get(pk=told.job_id).wanted == "continue"
    ada.post(reverse("ask", args=[told.pk, "stop"]))
    assert Job.objects.get(pk=told.job_id).state == "stopping"
    ada.post(reverse("ask", args=[told.pk, "keep"]))
    assert Job.objects.get(pk=told.job_id).wanted in ("keep", "stop")
    assert ada.post(reverse("ask", args=[told.pk, "explode"])).status_code == 404


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("ask", "run"), ("compile", "run"), ("delete-network", "network"), ("delete-library", "storage"),
        ("remeasure", "targets"), ("start-example", "home"), ("example-run", "home"), ("logout", "home"),
    ],
)  # fmt: skip
def test_what_a_button_does_is_not_done_by_opening_its_address_which_leads_back(
    site: Site, ada: Client, told: TuningRun, name: str, where: str
) -> None:
    keys = {"ask": [told.pk, "stop"], "compile": [told.pk], "delete-network": [site.network.pk],
            "delete-library": [uuid.uuid4()], "remeasure": [site.target.pk], "example-run": [site.network.pk]}  # fmt: skip
    answer = ada.get(reverse(name, args=keys.get(name, [])))
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    page = answer.content.decode()
    back = reverse(where, args={"run": [told.pk], "network": [site.network.pk]}.get(where, []))
    assert "Nothing was done</h1>" in page
    assert f'go back to <a href="{back}">' in page
    assert "Sign out" in page
    assert Job.objects.get(pk=told.job_id).state == "running"


def test_a_page_s_part_of_the_site_is_marked(site: Site, ada: Client, told: TuningRun) -> None:
    of_run = [reverse("run", args=[told.pk]), reverse("operator", args=[told.pk, 0])]
    for address in ("/", "/runs/new", *of_run):
        assert re.findall(r'aria-current="page">(\w+)<', ada.get(address).content.decode()) == ["Runs"], address


def test_a_network_whose_sizes_are_open_is_not_offered_and_leads_to_them(site: Site, ada: Client) -> None:
    open_ = [{"input": "x", "axis": 0, "symbol": "batch"}]
    dynamic = Network.objects.create(
        owner=site.ada, name="dyn", sha256="b" * 64, size=6, state="ready",
        inspection={"inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 3]}], "dynamic": open_},
    )  # fmt: skip
    link = f'<a href="{reverse("network", args=[dynamic.pk])}">'
    for page in (ada.get(f"/runs/new?network={dynamic.pk}"), ada.post("/runs/new", {"network": dynamic.pk})):
        text = page.content.decode()
        assert f'value="{dynamic.pk}"' not in text
        assert f"Not offered before the sizes are chosen that its file leaves open: {link}dyn</a>" in text
    site.network.delete()
    text = ada.get("/runs/new").content.decode()
    assert "dyn leaves sizes open." in text
    assert f"{link}Choose the sizes" in text
    Network.objects.filter(pk=dynamic.pk).update(shapes={"x": [1, 3]})
    text = ada.get("/runs/new").content.decode()
    assert f'<option value="{dynamic.pk}"' in text
    assert "Not offered" not in text


def test_a_network_says_nothing_of_itself_that_its_file_does_not(site: Site, ada: Client) -> None:
    """Neither who made it, nor its work where no size is known that there would be any at."""
    told = {"opset": 17, "nodes": 2, "parameters": 216, "outputs": [], "operators": {}, "work": {}}
    open_ = [{"input": "x", "axis": 0, "symbol": "batch"}]
    page = lambda: ada.get(reverse("network", args=[site.network.pk])).content.decode()  # noqa: E731
    for producer, flops, said in (("unknown", 0, False), ("pytorch 2.13", 1e6, True)):
        site.network.inspection |= told | {"producer": producer, "flops": flops, "dynamic": open_}
        site.network.save()
        assert ("made by" in page(), "work of one inference" in page()) == (said, said)


def test_too_many_configurations_are_called_what_their_field_is(site: Site, ada: Client) -> None:
    text = ada.post(
        "/runs/new", {"method": "auto", "network": site.network.pk, "target": site.target.pk}
    ).content.decode()
    assert "A run needs a limit: minutes, configurations, a latency to reach" in text
    assert "Configurations</label>" in text


def test_what_cannot_be_asked_is_explained(site: Site, ada: Client, told: TuningRun) -> None:
    ada.post(reverse("ask", args=[told.pk, "stop"]))
    answer = ada.post(reverse("ask", args=[told.pk, "pause"]), follow=True)
    assert "Pause: it is stopping" in answer.content.decode()


def test_a_refusal_is_said_at_once_to_the_script_and_after_the_redirect_without(
    site: Site, ada: Client, told: TuningRun
) -> None:
    script = {"HX-Request": "true", "HX-Target": "refused"}
    assert ada.post(reverse("ask", args=[told.pk, "stop"]), headers=script).content.decode().strip() == ""
    answer = ada.post(reverse("ask", args=[told.pk, "pause"]), headers=script)
    sentence = "Pause: it is stopping. Next step: reload the page to see what it does now."
    assert f'<div class="notice" role="alert">{sentence}</div>' in answer.content.decode()
    page = reverse("run", args=[told.pk])
    assert sentence not in ada.get(page).content.decode()  # once is enough
    answer = ada.post(reverse("ask", args=[told.pk, "pause"]))
    assert (answer.status_code, answer["Location"]) == (302, page)
    assert sentence in ada.get(page).content.decode()


def test_every_button_of_a_run_says_its_refusal_where_the_page_has_a_place_for_it(ada: Client, told: TuningRun) -> None:
    page = ada.get(reverse("run", args=[told.pk])).content.decode()
    assert page.count('id="refused"') == 1
    for word in ("pause", "resume", "stop", "keep"):
        address = reverse("ask", args=[told.pk, word])
        assert f'action="{address}" hx-post="{address}" hx-target="#refused"' in page, word


@pytest.mark.parametrize(
    ("state", "wanted", "offered"),
    [
        ("running", "continue", {"pause", "stop", "keep"}), ("running", "pause", {"resume", "stop", "keep"}),
        ("queued", "continue", {"pause", "stop", "keep"}), ("paused", "continue", {"resume", "stop", "keep"}),
        ("failed", "continue", {"resume"}), ("stopping", "stop", set()), ("done", "continue", set()),
    ],
)  # fmt: skip
def test_without_its_script_the_page_offers_what_is_of_use_and_says_what_went_wrong(
    ada: Client, told: TuningRun, state: str, wanted: str, offered: set[str]
) -> None:
    Job.objects.filter(pk=told.job_id).update(state=state, wanted=wanted, error="a disk is gone", next_step="buy one")
    page = ada.get(reverse("run", args=[told.pk])).content.decode()
    shown = re.findall(r'data-part="(pause|resume|stop|keep)">', page)
    assert set(shown) == offered
    assert "a disk is gone" in page
    assert "Next step: buy one." in page


def test_a_part_of_a_page_is_no_form_when_the_session_is_over(told: TuningRun) -> None:
    answer = Client().get("/login/", headers={"HX-Request": "true"})
    assert (answer["HX-Refresh"], answer.content) == ("true", b"")


def test_an_attempt_that_got_nowhere_is_said_with_when_the_next_one_is(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    Target.objects.filter(pk=site.target.pk).update(kind="local")
    run, now = site.run(), clock.now()
    compiling = Job.objects.create(task="compile", owner=site.ada, run=run, network=site.network)
    reading = Job.objects.create(task="inspect", owner=site.ada, network=site.network)
    measuring = Job.objects.create(task="hardware", target=site.target)
    Network.objects.filter(pk=site.network.pk).update(state="inspecting")
    pages = {
        run.job.pk: ["/", reverse("run", args=[run.pk])],
        compiling.pk: [reverse("run", args=[run.pk])],
        reading.pk: [reverse("network", args=[site.network.pk]), reverse("network-state", args=[site.network.pk])],
        measuring.pk: ["/targets/"],
    }
    for job, addresses in pages.items():
        held = services.claim(job)
        assert held is not None
        services.conclude(held, "crashed", f"no space for {held.task}", now=now)
        monkeypatch.setattr(clock, "now", lambda: now + timedelta(seconds=3.5))
        for address in addresses:
            page = ada.get(address).content.decode()
            assert "tries again in 7 s" in page, address
            assert f"no space for {held.task}" in page or address == "/", address
        monkeypatch.setattr(clock, "now", lambda: now + timedelta(seconds=11))
        for address in addresses:
            assert "tries again" not in ada.get(address).content.decode(), address
        Job.objects.filter(pk=job).update(state="done")
        monkeypatch.setattr(clock, "now", lambda: now)


def test_the_best_so_far_can_be_asked_for(site: Site, ada: Client, told: TuningRun) -> None:
    answer = ada.post(reverse("compile", args=[told.pk]), headers={"HX-Request": "true"})
    assert "Compiling the best so far" in answer.content.decode()
    assert Job.objects.filter(run=told, task="compile").count() == 1


def upload(name: str = "net.onnx", content: bytes = b"onnx") -> dict[str, Any]:
    return {"file": SimpleUploadedFile(name, content)}


def test_an_upload_leads_to_its_network(site: Site, ada: Client) -> None:
    answer = ada.post("/networks/", upload(), headers={"X-Requested-With": "XMLHttpRequest"})
    network = Network.objects.get(owner=site.ada, name="net")
    assert answer.json() == {"location": reverse("network", args=[network.pk])}
    assert "Reading the network" in ada.get(answer.json()["location"]).content.decode()


def test_a_file_that_was_there_under_another_name_is_named(site: Site, ada: Client) -> None:
    """Whoever uploads a wrong export once more would take the old network for the new one."""
    for name in ("net.onnx", "net.onnx", "net_v2.onnx"):
        place = ada.post("/networks/", upload(name), headers={"X-Requested-With": "XMLHttpRequest"}).json()["location"]
        said = "net_v2.onnx holds the same as net.onnx, which was there before: this is it."
        assert (said in ada.get(place).content.decode()) is (name == "net_v2.onnx")


def test_a_list_that_is_empty_by_now_is_another_page(site: Site, ada: Client) -> None:
    """Its last network was deleted in another tab: what the page asks for again is no longer part of it."""
    site.run()
    assert 'id="rows"' in ada.get("/", headers={"HX-Request": "true"}).content.decode()
    TuningRun.objects.all().delete()
    assert ada.get("/", headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    assert "HX-Refresh" not in ada.get("/")


def test_a_list_that_is_empty_no_longer_is_another_page(site: Site, ada: Client) -> None:
    """Its first run was begun in another tab, or by `up --demo` while the page was opened."""
    asking = {"HX-Request": "true", "HX-Target": "welcome"}
    assert 'id="welcome"' in ada.get("/").content.decode()
    assert (ada.get("/", headers=asking).status_code, ada.get("/", headers=asking).content) == (204, b"")
    site.run()
    assert ada.get("/", headers=asking)["HX-Refresh"] == "true"
    assert 'id="welcome"' not in ada.get("/").content.decode()


@pytest.mark.parametrize("form", [{}, {"file": "text"}, upload("net.txt"), upload("net.onnx", b"")])
def test_a_bad_upload_is_explained_with_a_next_step(site: Site, ada: Client, form: dict[str, Any]) -> None:
    answer = ada.post("/networks/", form, headers={"X-Requested-With": "XMLHttpRequest"})
    assert answer.status_code == 400
    assert "Next step" in answer.json()["error"]


def test_an_account_uploads_so_often_and_no_more(
    site: Site, ada: Client, bob: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paces, "UPLOADS", Pace(2, 3600.0))
    script = {"X-Requested-With": "XMLHttpRequest"}
    answers = [ada.post("/networks/", upload(content=b"%d" % n), headers=script) for n in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "net.onnx: an account has at most 2 uploads in 1 h. Next step: wait" in answers[-1].json()["error"]
    assert Network.objects.filter(owner=site.ada, name="net").count() == 2
    assert bob.post("/networks/", upload(), headers=script).status_code == 200


def test_an_account_uploads_so_much_and_no_more(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of it: what was refused or deleted stays on the disk for a while."""
    monkeypatch.setattr(paces, "BYTES", Pace(9, 3600.0))
    script = {"X-Requested-With": "XMLHttpRequest"}
    answers = [
        ada.post("/networks/", upload(name, b"x" * 4), headers=script) for name in ("a.onnx", "b.onnx", "c.onnx")
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "c.onnx: an account has at most 9 B of uploads in 1 h. Next step: wait" in answers[-1].json()["error"]


def test_the_example_is_made_so_often_and_no_more(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time a process makes it."""
    monkeypatch.setattr(paces, "EXAMPLES", Pace(1, 3600.0))
    monkeypatch.setattr(home, "example_file", lambda name: [b"onnx"])
    assert ada.post("/example/").headers["Location"].startswith("/example/")
    answer = ada.post("/example/", follow=True)
    assert "squeezenet: an account has at most 1 examples in 1 h. Next step: wait" in answer.content.decode()


def test_runs_are_begun_so_often_and_no_more(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of those that were begun and stopped stay until their network goes."""
    monkeypatch.setattr(paces, "RUNS", Pace(1, 3600.0))
    form = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": 1}
    begun = [ada.post(reverse("new-run"), form) for _ in range(2)]
    assert [answer.status_code for answer in begun] == [302, 200]
    assert "an account has at most 1 runs begun in 1 h. Next step: wait" in begun[1].content.decode()


def test_the_example_is_begun_no_more_often_than_any_run(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address begins one of any network that is ready."""
    monkeypatch.setattr(paces, "RUNS", Pace(1, 3600.0))
    Target.objects.filter(pk=site.target.pk).update(kind="local")
    address = reverse("example-run", args=[site.network.pk])
    ada.post(address)
    first = TuningRun.objects.get()
    services.request(first, site.ada, "stop")
    ada.post(f"{address}?after={first.pk}")
    assert TuningRun.objects.count() == 1


def test_a_run_is_told_so_much_and_no_more(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word is an event and a message that stay."""
    monkeypatch.setattr(paces, "WORDS", Pace(2, 3600.0))
    run = site.run()
    answers = [
        ada.post(reverse("ask", args=[run.pk, word]), headers={"HX-Request": "true"}).content.decode()
        for word in ("pause", "resume", "stop")
    ]
    assert "an account has at most 2 requests in 1 h" in answers[2]
    assert all("at most" not in answer for answer in answers[:2])


def test_open_dimensions_are_asked_for(site: Site, ada: Client) -> None:
    ports = [
        {"name": "ids", "dtype": "int64", "shape": ["batch", None]},
        {"name": "mask", "dtype": "int64", "shape": ["batch", 4]},
    ]
    dynamic = [
        {"input": "ids", "axis": 0, "symbol": "batch"}, {"input": "ids", "axis": 1, "symbol": None},
        {"input": "mask", "axis": 0, "symbol": "batch"},
    ]  # fmt: skip
    Network.objects.filter(pk=site.network.pk).update(inspection={"inputs": ports, "dynamic": dynamic}, shapes={})
    address = reverse("network", args=[site.network.pk])
    assert ada.get(address).content.decode().count('type="number"') == 2
    assert "aria-invalid" in ada.post(address, {"symbol:batch": "0", "ids:1": "x"}).content.decode()
    answer = ada.post(address, {"symbol:batch": "2", "ids:1": "7"}, follow=True)
    assert '<div class="notice plain" role="alert">Kept: ids 2x7, mask 2x4.</div>' in answer.content.decode()
    site.network.refresh_from_db()
    assert site.network.shapes == {"ids": [2, 7], "mask": [2, 4]}
    kept = re.findall(r'name="(\S+)" value="(\d+)"', ada.get(address).content.decode())
    assert kept == [("symbol:batch", "2"), ("ids:1", "7")]
    site.network.refresh_from_db()
    run = site.run()
    answer = ada.post(address, {"symbol:batch": "3", "ids:1": "7"}, follow=True)
    said = "Kept: ids 3x7, mask 3x4. Runs that were asked for before keep the sizes that they have."
    assert said in answer.content.decode()
    run.refresh_from_db()
    assert run.shapes == {"ids": [2, 7], "mask": [2, 4]}


def test_sizes_that_a_file_leaves_open_are_said_wherever_they_were_chosen(site: Site, ada: Client) -> None:
    run = site.run()
    report = reverse("run-file", args=[run.pk, "report.html"])
    pages = ["/", reverse("run", args=[run.pk]), report, reverse("network", args=[site.network.pk]), "/runs/new"]
    shapes = {"x": [8, 3, 224, 224], "mask": [77]}
    dynamic = [{"input": "x", "axis": axis, "symbol": None} for axis in (0, 2)]
    TuningRun.objects.update(shapes=shapes)
    Network.objects.update(shapes=shapes)
    assert not [page for page in pages if "x 8x3x224x224" in ada.get(page).getvalue().decode()]
    inspection = {"inputs": [{"name": "x", "dtype": "float32", "shape": [None, 3, None, 224]}], "dynamic": dynamic}
    Network.objects.update(inspection=inspection)
    assert [page for page in pages if "x 8x3x224x224" in ada.get(page).getvalue().decode()] == pages
    assert "squeezenet, x 8x3x224x224</option>" in ada.get("/runs/new").content.decode()
    assert not [page for page in pages if "mask 77" in ada.get(page).getvalue().decode()]


def test_a_rejected_network_tells_cause_and_next_step(site: Site, ada: Client) -> None:
    Network.objects.filter(pk=site.network.pk).update(state="rejected", error="node 3 is odd", next_step="export again")
    page = ada.get(reverse("network", args=[site.network.pk])).content.decode()
    assert "node 3 is odd" in page
    assert "export again" in page


def test_a_first_visit_says_what_to_do(site: Site, bob: Client) -> None:
    page = bob.get("/").content.decode()
    assert "Run the example" in page
    assert page.count("<li>") == 3


def test_a_first_visitor_whose_network_was_refused_is_offered_to_upload_another(site: Site, bob: Client) -> None:
    Network.objects.create(owner=site.bob, name="x", sha256="c" * 64, size=6, state="rejected")
    page = bob.get("/").content.decode()
    assert "Upload a network" in page
    assert "Start your first run" not in page


def test_the_example_starts_by_itself_when_all_is_ready(site: Site, ada: Client) -> None:
    Target.objects.filter(pk=site.target.pk).update(kind="local")
    answer = ada.post(reverse("example-run", args=[site.network.pk]), headers={"HX-Request": "true"})
    assert answer["HX-Redirect"] == reverse("run", args=[TuningRun.objects.get().pk])


def test_the_example_waits_for_the_machine(site: Site, ada: Client) -> None:
    Target.objects.filter(pk=site.target.pk).update(state="new", kind="local")
    answer = ada.post(reverse("example-run", args=[site.network.pk]), headers={"HX-Request": "true"})
    assert "being measured" in answer.content.decode()
    assert not TuningRun.objects.exists()


def test_the_example_starts_once_a_machine_that_failed_was_measured_again(site: Site, ada: Client) -> None:
    """Perhaps in another tab: the page goes on asking."""
    Target.objects.filter(pk=site.target.pk).update(state="failed", error="no", next_step="again", kind="local")
    page = ada.get(reverse("example", args=[site.network.pk])).content.decode()
    assert "Tuning starts by itself once the machine was measured." in page
    assert 'id="preparing" hx-post' in page


def test_who_does_not_run_the_site_is_told_to_ask_for_a_measurement(site: Site, ada: Client) -> None:
    """Targets gives them no button."""
    Target.objects.filter(pk=site.target.pk).update(state="failed", error="no", next_step="again", kind="local")
    addresses = ("/runs/new", reverse("example", args=[site.network.pk]))
    for address in addresses:
        page = ada.get(address).content.decode()
        assert "ask who runs this site to have " in page
        assert f'href="{reverse("targets")}">Measure' not in page
    assert 'hx-trigger="every 10s"' in ada.get("/runs/new").content.decode()
    site.ada.is_staff = True
    site.ada.save()
    for address in addresses:
        page = ada.get(address).content.decode()
        assert "ask who runs this site" not in page
        assert f'href="{reverse("targets")}">Measure' in page


def test_downloads_are_attachments_with_every_measurement(ada: Client, told: TuningRun) -> None:
    figures = ada.get(reverse("snapshot", args=[told.pk]))
    assert figures["Content-Disposition"] == 'attachment; filename="squeezenet-figures.json"'
    table = ada.get(reverse("run-file", args=[told.pk, "measurements.csv"]))
    assert table["Content-Disposition"].startswith("attachment")
    assert table["X-Content-Type-Options"] == "nosniff"
    assert len(b"".join(table).splitlines()) == 1 + told.measurements.count()
    one = b"".join(ada.get(reverse("operator-table", args=[told.pk, 1])))
    assert len(one.splitlines()) == 1 + told.measurements.filter(operator=1).count() == 2
    assert ada.get(reverse("operator-table", args=[told.pk, 9])).status_code == 404
    log = b"".join(ada.get(reverse("run-file", args=[told.pk, "log.jsonl"])))
    assert log.count(b'"kind":"measurement"') == told.measurements.count()
    assert ada.get(reverse("run-file", args=[told.pk, "secret_key"])).status_code == 404


def test_an_artifact_is_its_owners_and_only_if_it_passed(site: Site, ada: Client, bob: Client, told: TuningRun) -> None:
    job = services.request_artifact(told, site.ada)
    made = Artifact.objects.create(run=told, job=job, sha256="b" * 64, size=3, state="ready", ratio=1.0)
    made.path.parent.mkdir(parents=True, exist_ok=True)
    made.path.write_bytes(b"zip")
    address = reverse("artifact", args=[made.pk])
    assert b"".join(ada.get(address)) == b"zip"
    assert bob.get(address).status_code == 404
    Artifact.objects.filter(pk=made.pk).update(state="rejected")
    assert ada.get(address).status_code == 404


def test_a_link_signs_in_once(site: Site, data_dir: Any) -> None:
    token = signin.issue(site.ada)
    first = Client()
    assert first.head(f"/login/{token}/").status_code == 405
    assert first.get(f"/login/{token}/").status_code == 302
    assert first.get("/").status_code == 200
    assert Client().get(f"/login/{token}/").status_code == 403


def test_a_password_signs_in(site: Site) -> None:
    client = Client()
    assert "do not belong together" in client.post("/login/", {"username": "ada", "password": "no"}).content.decode()
    assert client.post("/login/", {"username": "ada", "password": "a long password"}).status_code == 302


def test_the_target_page_shows_what_was_measured(site: Site, ada: Client) -> None:
    page = ada.get("/targets/").content.decode()
    assert "a machine" in page


def test_two_clicks_on_the_example_are_one_run(site: Site, ada: Client) -> None:
    Target.objects.filter(pk=site.target.pk).update(kind="local")
    address = reverse("example-run", args=[site.network.pk])
    assert ada.post(address).headers["Location"] == ada.post(address).headers["Location"]
    assert TuningRun.objects.count() == 1


def test_a_page_of_the_example_that_comes_back_starts_nothing(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restored or by a bookmark, whatever became of its run since; who chooses the example again gets another one."""
    monkeypatch.setattr(home, "example_file", lambda name: [b"onnx"])
    Target.objects.filter(pk=site.target.pk).update(kind="local")

    def chosen() -> tuple[str, str]:
        """The page, and what it asks for every second."""
        page = ada.post("/example/").headers["Location"]
        Network.objects.update(state="ready")
        (address,) = re.findall(r'id="preparing" hx-post="([^"]+)"', ada.get(page).content.decode())
        return page, html.unescape(address)

    page, address = chosen()
    first = ada.post(address).headers["Location"]
    Job.objects.update(state="done")
    TuningRun.objects.update(created=clock.now() - timedelta(days=1))
    for asked in (address, f"{page.partition('?')[0]}start"):
        assert ada.post(asked).headers["Location"] == first
    assert ada.post(chosen()[1]).headers["Location"] != first
    assert TuningRun.objects.count() == 2


def test_a_long_list_of_networks_has_pages(site: Site, ada: Client) -> None:
    Network.objects.bulk_create(
        Network(owner=site.ada, name=f"n{i}", sha256=f"{i:064x}", size=1, state="ready") for i in range(100)
    )
    assert "Page 1 of 2" in (page := ada.get(reverse("networks")).content.decode())
    assert page.count('class="name"') == 100
    assert ada.get(reverse("networks") + "?page=2").content.decode().count('class="name"') == 1


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        (Protection(7, True), ["reach no other file (Landlock level 7)", "no socket (seccomp)"]),
        (Protection(0, True), ["can read files of this user", "no socket (seccomp)"]),
        (Protection(4, False), ["Landlock level 4", "can reach sockets of this user"]),
    ],
)
def test_the_targets_page_says_what_holds_uploaded_files_back(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch, offered: Protection, words: list[str]
) -> None:
    Target.objects.update(measured_at=clock.now())
    monkeypatch.setattr(protection, "offered", lambda: offered)
    page = ada.get("/targets/").content.decode()
    assert all(word in page for word in words)


def test_a_machine_that_does_not_say_what_it_offers_is_asked_again_after_a_while(
    site: Site, ada: Client, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that looks again every two seconds must not start a process each time, nor break."""
    where, said = settings.BASE_DIR, protection._said
    Target.objects.update(measured_at=clock.now(), kind="local")
    settings.BASE_DIR = tmp_path / "nowhere"
    asked = list[float]()
    monkeypatch.setattr(protection, "_known", None)
    monkeypatch.setattr(protection, "_asked", -protection.AGAIN)
    monkeypatch.setattr(protection, "_said", lambda: asked.append(1) or said())
    pages = [ada.get("/targets/").content.decode() for _ in range(2)]
    assert all("did not say what holds them back" in page for page in pages)
    (finding,) = doctor.confinement()
    assert (finding.level, finding.name) == ("warn", "confinement")
    assert len(asked) == 1
    monkeypatch.setattr(protection, "_asked", -protection.AGAIN)
    settings.BASE_DIR = where
    assert "did not say what holds them back" not in ada.get("/targets/").content.decode()
    assert protection.offered() is protection.offered()
    assert len(asked) == 2


def test_what_the_kernel_offers_is_asked_of_the_kernel() -> None:
    assert protection.offered().landlock >= 0


def test_an_address_by_another_name_says_how_to_have_it_known(site: Site, ada: Client) -> None:
    answer = ada.get("/", headers={"host": "tuner.lan:8000"})
    assert answer.status_code == 400
    page = answer.content.decode()
    assert "ALLOWED_HOSTS=tuner.lan" in page
    assert ada.get("/", headers={"host": "["}).status_code == 400
    assert "ALLOWED_HOSTS=[fe80::1]" in ada.get("/", headers={"host": "[fe80::1]:8000"}).content.decode()
    assert "<script>" not in ada.get("/", headers={"host": "<script>alert(1)</script>"}).content.decode()


def test_a_second_press_finds_the_run_of_the_first(site: Site, ada: Client) -> None:
    form = {"network": site.network.pk, "target": site.target.pk, "method": "auto", "minutes": 1}
    assert len({ada.post(reverse("new-run"), form).headers["Location"] for _ in range(2)}) == 1
    assert TuningRun.objects.count() == 1


def test_a_file_of_another_kind_counts_for_nobodys_uploads(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paces, "UPLOADS", Pace(1, 3600.0))
    assert "it is not an ONNX file" in ada.post("/networks/", upload("a.pt", b"x"), follow=True).content.decode()
    assert paces.UPLOADS.allows(str(site.ada.pk))


def test_what_the_run_is_compared_with_can_be_measured_again_where_that_failed(
    site: Site, ada: Client, told: TuningRun
) -> None:
    again = f'action="{reverse("take-baselines", args=[told.pk])}"'
    assert again not in ada.get(reverse("run", args=[told.pk])).content.decode()
    Job.objects.filter(task="baseline", run=told).update(
        state="failed", error="it was killed", next_step="look at the log"
    )
    assert again in ada.get(reverse("run", args=[told.pk])).content.decode()
    TuningRun.objects.filter(pk=told.pk).update(trials=0)
    Job.objects.filter(pk=told.job_id).update(state="failed", error="no such sizes")  # the cause of both
    assert again not in ada.get(reverse("run", args=[told.pk])).content.decode()
    TuningRun.objects.filter(pk=told.pk).update(trials=told.trials)
    ada.post(reverse("take-baselines", args=[told.pk]))
    assert Job.objects.filter(task="baseline", run=told, state="queued").exists()
    assert again not in ada.get(reverse("run", args=[told.pk])).content.decode()


def test_examples_are_offered_by_name(site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(examples.EVERY) == set(EXAMPLES)
    made: list[str] = []
    monkeypatch.setattr(home, "example_file", lambda name: made.append(name) or [name.encode()])
    assert '<option value="resnet50">' in ada.get("/networks/").content.decode()
    ada.post("/example/", {"name": "resnet50"})
    assert made == ["resnet50"]
    assert "there is no example of this name" in ada.post("/example/", {"name": "../x"}, follow=True).content.decode()
    assert made == ["resnet50"]


def test_what_was_mistyped_is_told_in_short_and_does_not_add_up(ada: Client, bob: Client) -> None:
    for _ in range(20):
        ada.post("/example/", {"name": "x" * 10_000})
    kept = sum(len(cookie.value) for cookie in ada.cookies.values())
    assert kept < 5000
    assert not [name for name in ada.session.keys() if name.startswith("_messages")]
    page = ada.get("/").content.decode()
    assert "x" * 199 + "…: there is no example of this name" in page
    assert "x" * 200 not in page
    ada.post("/example/", {"name": "mine"})
    ada.post(reverse("logout"))
    assert "mine" not in ada.get("/login/").content.decode(), "it is for nobody else who sits there"
