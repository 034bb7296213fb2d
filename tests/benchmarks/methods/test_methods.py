"""Comparisons of methods on synthetic landscapes: arms, cells, claims and pictures."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.methods.finished import FAST, SLOW, cell
from tests.landscapes.recorded import costs, curve_recording, space_recording
from workers.benchmarks.cells import Key
from workers.benchmarks.interval import Interval
from workers.benchmarks.machine import Machine, Network
from workers.benchmarks.methods import command, parts, replayed
from workers.benchmarks.methods.arms import SCHEDULING, SEARCHING, arm_named, spelled
from workers.benchmarks.methods.claim import Target
from workers.benchmarks.methods.claims import CLAIMS, evaluated, table
from workers.benchmarks.methods.compare import EFFECTS, grouped, held, summary
from workers.benchmarks.methods.parts import replayed_parts, seeds_of
from workers.benchmarks.methods.probes import PROBES
from workers.benchmarks.methods.replayed import Source, slot_ends, sources
from workers.engine.methods import METHODS, Method, Rhythm
from workers.engine.scheduler import SCHEDULERS
from workers.headless.errors import UserMistake
from workers.landscapes import Costs, CurveRecording
from workers.messages.effects import effects_of
from workers.messages.methods import BEST
from workers.sandbox.lock import MeasureLock

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def landscapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landscapes")
    curve_recording(folder / "parts-c", 2, 96).write(folder / "synthetic.curve.npz")
    space_recording(folder / "parts-s", 2, 300).write(folder / "synthetic.space.npz")
    costs().write(folder / "costs.json")
    return folder


@pytest.fixture(scope="module")
def curves(landscapes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without the space, for those who ask nothing of it: there every plan is searched for."""
    folder = tmp_path_factory.mktemp("curves")
    for name in ("synthetic.curve.npz", "costs.json"):
        shutil.copy(landscapes / name, folder)
    return folder


@pytest.fixture
def run(run_and_draw: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Without a landscape's own pictures: drawing them takes as long as all else that most tests ask for."""
    monkeypatch.setattr(command, "draw_landscape", lambda source, folder: None)
    return run_and_draw


@pytest.fixture
def run_and_draw(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str]:
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        code = command.run(parser.parse_args([str(word) for word in words]))
        return code, capsys.readouterr().out

    return call


def test_convolutions_and_dense_layers_are_compared_alone(curves: Path, tmp_path: Path, run: Run) -> None:
    """Of the synthetic six a pooling and a copy are left out, and what is left is another comparison."""
    words = ("--landscape", curves, "--methods", "round_robin", "--seeds", "0", "--out", tmp_path)
    for operators in ("all", "compute"):
        assert run(*words, "--operators", operators)[0] == 0
    cells = [json.loads(path.read_text()) for path in (tmp_path / "cells").glob("*round_robin-curve*.json")]
    whole, part = sorted(cells, key=lambda one: -len(one["operators"]))
    names = [operator["name"] for operator in part["operators"]]
    assert names == [o["name"] for o in whole["operators"] if o["name"].startswith(("conv", "matmul"))]
    assert part["regret"][-1][1] >= 0
    assert set(grouped(cells)["curve", "synthetic"]["round_robin"]) == {0}


def test_how_often_an_interval_held_is_a_share_of_the_slots_it_was_told_for() -> None:
    told = [cell(SLOW["curve"], key={"arm": "dynatune", "seed": s}, foretold=200, held=168) for s in range(5)]
    assert held(told[0], told[0]) == [0.84]
    assert held(SLOW, SLOW) == []

    def of(cells: list[dict[str, Any]], words: str) -> dict[str, Any]:
        (row,) = (row for row in evaluated(cells) if words in row["text"])
        return row

    row = of(told, "by the theory of records")
    assert (row["holds"], row["target"]) == ("yes", ">= 0.70 everywhere, <= 0.90, of >= 500")
    assert row["events"] == 1000
    row = of(told[:2], "by the theory of records")
    assert (row["holds"], row["events"]) == (None, 400)
    # Cells of before do not say of which slots these were.
    assert not of(told, "intervals without width")["networks"]
    assert not of(told, "brought something")["networks"]
    told = [{**one, "without_width": 150, "gained": 20, "gained_held": 5} for one in told]
    assert of(told, "intervals without width")["networks"]["net (curve)"]["median"] == 0.75
    row = of(told, "brought something")
    assert (row["networks"]["net (curve)"]["median"], row["events"], row["holds"]) == (0.25, 100, None)
    (row,) = summary(told)
    assert (row["held"], row["foretold"]) == (840, 1000)
    none = {**told[0], "gained_held": 0}  # which is no figure that never came
    assert of([none, told[1]], "brought something")["networks"]["net (curve)"]["median"] == 0.125


@pytest.mark.parametrize(
    ("medians", "limits", "met"),
    [
        ([1.2, 2.4], {"every": 1.2, "somewhere": 2.4}, True),
        ([1.1, 2.4], {"every": 1.2, "somewhere": 2.4}, False),
        ([1.2, 1.3], {"every": 1.2, "somewhere": 2.4}, False),
        ([0.5, 1.0, 1.1, 1.2], {"every": 1.0, "but": 0.25}, True),
        ([0.5, 0.9, 1.1, 1.2], {"every": 1.0, "but": 0.25}, False),
        ([1.3, 2.0, 5.0], {"every": 1.3, "median": 2.0}, True),
        ([0.71, 0.9], {"every": 0.7, "most": 0.9}, True),
        ([0.71, 0.91], {"every": 0.7, "most": 0.9}, False),
        ([0.69, 0.9], {"every": 0.7, "most": 0.9}, False),
        ([0.0, 4.0], {"median": 1.98}, False),
        ([1.0, 3.0], {"median": 1.98}, True),
    ],
)
def test_a_target_is_met_by_every_network_or_by_what_it_names(
    medians: list[float], limits: dict[str, Any], met: bool
) -> None:
    networks = [Interval(median, (median, median), 5) for median in medians]
    assert Target(**limits).met(networks) is met
    assert Target(**limits).holds(networks) == ("yes" if met else "no")
    assert Target(**limits).holds([]) is None


@pytest.mark.parametrize(
    ("bounds", "limits", "holds"),
    [
        ((1.2, 1.9), {"every": 1.2}, "yes"),
        ((1.19, 1.9), {"every": 1.2}, "open"),
        ((0.0, 1.19), {"every": 1.2}, "no"),
        ((0.0, 1.2), {"every": 1.2}, "open"),
        (None, {"every": 1.2}, "open"),
        (None, {"every": 1.2, "timed": True}, "yes"),
        (None, {"most": 1.2, "timed": True}, "no"),
        ((1.2, 1.9), {"most": 1.9}, "yes"),
        ((1.2, 1.9), {"most": 1.8}, "open"),
        ((1.2, 1.9), {"most": 1.1}, "no"),
        ((1.2, 1.9), {"every": 1.3, "most": 1.1}, "no"),
        ((1.2, 1.9), {"somewhere": 2.0}, "no"),
        ((1.2, 1.9), {"median": 1.5}, "open"),
    ],
)
def test_a_target_holds_or_fails_by_all_that_the_interval_leaves_possible(
    bounds: tuple[float, float] | None, limits: dict[str, Any], holds: str
) -> None:
    """A median of 1.5: by it alone all but the strictest would hold."""
    assert Target(**limits).holds([Interval(1.5, bounds, 5)]) == holds


def test_one_network_in_doubt_leaves_a_target_open_and_one_that_fails_decides() -> None:
    sure, doubtful, bad = (Interval(1.5, bounds, 5) for bounds in ((1.4, 1.6), (0.9, 1.6), (0.5, 0.9)))
    assert Target(every=1.0).holds([sure, doubtful]) == "open"
    assert Target(every=1.0).holds([sure, doubtful, bad]) == "no"
    assert Target(every=1.0, but=0.5).holds([sure, sure, doubtful, bad]) == "yes"
    assert Target(somewhere=1.0).holds([sure, bad]) == "yes"


def test_every_claim_has_a_row_and_what_has_no_cells_is_not_run() -> None:
    rows = evaluated([SLOW, FAST])
    assert len(rows) == len(CLAIMS) + 2  # and whether the recommended method is the best, on the one kind there is
    assert rows[0]["networks"]["net (curve)"]["median"] == pytest.approx(80 / 60)  # to the very latency
    assert rows[1]["networks"]["net (curve)"]["median"] == 2.0  # to within 1 %
    assert (rows[1]["holds"], rows[1]["met"]) == ("open", False)  # 2.0 is not 2.4, and one seed is none
    assert "open, medians miss it" in table(rows[1:2])
    assert all(row["holds"] is None for row in rows if not row["networks"] or row["target"] == "-")
    assert all(row["cuda"] == "not run" for row in rows)
    text = table(rows)
    assert "not run" in text
    assert "net (curve)" in text


def test_a_figure_without_a_target_neither_holds_nor_fails() -> None:
    live = cell([[1, 10.0], [80, 1.0]], key={"arm": "dynatune", "layout": "live"})
    (row,) = (row for row in evaluated([live]) if row["text"].startswith("network at the end over its first"))
    assert (row["target"], row["holds"]) == ("-", None)
    assert row["networks"]["net (live)"]["median"] == 10.0
    assert "10.00 (n = 1)" in table([row])
    assert "yes" not in table([row])


def test_an_arm_that_is_its_base_claims_nothing() -> None:
    keys = [{"arm": arm, "seed": seed} for arm in ("sequential", "dynatune") for seed in range(5)]
    rows = evaluated([cell(SLOW["curve"], key=key) for key in keys])
    assert rows[0]["networks"]["net (curve)"]["median"] == 1.0
    assert rows[0]["holds"] == "no"


def test_arms_are_presets_schedulers_and_parts() -> None:
    assert arm_named("gradient").scheduler == "gradient"
    assert arm_named("random_slots").scheduler == "random"
    found = arm_named("autotvm+sampler=adaptive")
    assert (found.name, found.sampler, found.scheduler) == ("autotvm+sampler=adaptive", "adaptive", "sequential")
    assert found.definition != arm_named("autotvm").definition
    assert arm_named("autotvm+rhythm.plan=32").rhythm.plan == 32
    assert arm_named("gradient+search.acquisition=mean").search.acquisition == "mean"
    assert spelled("gradient+explorer.chains=16") == ("gradient", {"explorer.chains": "16"})
    assert spelled("dynamic_random") == ("dynamic_random", {})
    for wrong in (
        "autotvm+search.first=x",
        "autotvm+search.luck=1",
        "autotvm+explorer.luck=1",
        "autotvm+scheduler.luck=1",
        "autotvm+evaluator.most=x",
        "autotvm+rhythm.plan=0",
        "autotvm+cook.salt=1",
        "lottery",
        "autotvm+sampler=lottery",
        "autotvm+cook=anna",
        "autotvm+adaptive",
        "chameleon+explorer=metaschedule",
    ):
        with pytest.raises(UserMistake, match="--methods"):
            arm_named(wrong)


def test_a_scheduler_without_a_preset_has_the_search_of_its_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """With `auto`'s, which knows more, its slots would be compared by another search than theirs."""
    monkeypatch.setitem(SCHEDULERS, "largest", SCHEDULERS["linear"])
    assert replace(arm_named("largest"), name="linear", scheduler="linear") == METHODS["linear"]
    assert spelled("largest+rhythm.plan=32") == (BEST.name, {"scheduler": "largest", "rhythm.plan": "32"})


def test_the_default_arms_exist() -> None:
    for name in (*SCHEDULING, *SEARCHING):
        assert arm_named(name).name == name


def test_the_claims_arms_are_compared_by_default() -> None:
    arms = {arm for claim in CLAIMS for arm in (claim.arm, claim.base)}
    assert arms <= {*SCHEDULING, *SEARCHING, *PROBES}
    assert not {*SCHEDULING, *SEARCHING} & PROBES.keys()
    assert BEST.name in SCHEDULING
    assert {BEST.name, "auto", "random"} <= {*SEARCHING}
    assert not {"auto", "random"} & {*SCHEDULING}, "there they are others by another name"


def test_samplers_are_compared_on_as_many_candidates() -> None:
    rows = [claim for claim in CLAIMS if "adaptive over diverse" in claim.text]
    assert len(rows) == 2
    for claim in rows:
        ours, theirs = arm_named(claim.arm), arm_named(claim.base)
        assert (ours.sampler, theirs.sampler) == ("adaptive", "diverse")
        assert ours.search == theirs.search
        assert (ours.search.pool, ours.rhythm) == (8.0, theirs.rhythm)
        assert (ours.explorer, ours.cost_model, ours.evaluator) == (
            theirs.explorer,
            theirs.cost_model,
            theirs.evaluator,
        )
        assert "both of 8 plans' candidates" in claim.text


def test_a_slot_ends_where_its_plans_do(landscapes: Path) -> None:
    search = CurveRecording.read(landscapes / "synthetic.curve.npz").searches[0][0]
    assert slot_ends(search, 1, Rhythm(plan=16), 7) == [17, 33, 49, 65, 81, 96, 96]
    seconds = float(search.total[1:33].sum())
    assert slot_ends(search, 1, Rhythm(plan=16, slot_seconds=seconds), 2)[0] == 33
    assert slot_ends(search, 1, Rhythm(plan=16, slot_seconds=1.001 * seconds), 2)[0] == 49


def test_half_of_what_was_recorded_is_a_run_so_that_who_waits_for_another_s_end_need_not_measure_all(
    landscapes: Path, tmp_path: Path
) -> None:
    curve, space = sources(str(landscapes), None, [], tmp_path)
    recorded = [[int(search.trials.sum()) for search in row] for row in curve.recording.searches]  # type: ignore[union-attr]
    assert curve.trials(None) == round(sum(sum(row) / len(row) for row in recorded) / 2)
    assert curve.trials(10) == 60
    assert curve.longest == 96
    assert space.trials(None) == 2 * min(part.operator.size // 4 for part in space.recording.parts)  # type: ignore[union-attr]


def test_what_another_process_is_at_is_left_to_it_until_it_dies(curves: Path, tmp_path: Path, run: Run) -> None:
    words = ("--landscape", curves, "--methods", "round_robin", "--seeds", "0,1", "--trials-per-operator", 20)
    run(*words, "--out", tmp_path)
    cells = sorted((tmp_path / "cells").glob("*-curve-*.json"))
    assert len(cells) == 2
    claim = tmp_path / "begun" / cells[0].stem.rpartition("-")[2]
    assert not list(claim.parent.iterdir())  # pictures and report are claimed too
    for path in cells:
        path.unlink()
    holder = subprocess.Popen(["flock", str(claim), "sleep", "60"], start_new_session=True)
    try:
        while not claim.exists() or subprocess.run(["flock", "-n", str(claim), "true"]).returncode == 0:
            assert holder.poll() is None
        run(*words, "--out", tmp_path)
        assert [path.exists() for path in cells] == [False, True]
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()
    run(*words, "--out", tmp_path)
    assert [path.exists() for path in cells] == [True, True]
    assert not list((tmp_path / "begun").iterdir())


def test_probes_are_asked_where_no_methods_are_named(landscapes: Path, tmp_path: Path) -> None:
    def kinds(*words: str) -> dict[str, set[str]]:
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        given = ["--landscape", str(landscapes), "--out", str(tmp_path), *words]
        found: dict[str, set[str]] = {}
        for part in replayed_parts(parser.parse_args(given), tmp_path):
            found.setdefault(part.key.kind, set()).add(f"{part.key.arm} {part.key.seed}")
        return found

    probed = kinds("--seeds", "1,2")["probe"]
    seeded = ("evaluators", "surrogate", "explorers", "samplers", "belief", "decisions")
    assert probed == {"timings 1", *(f"{name} {seed}" for name in seeded for seed in (1, 2))}
    assert "probe" not in kinds("--methods", "dynatune")
    both = kinds("--methods", "dynatune,samplers", "--seeds", "1")
    assert both["probe"] == {"samplers 1"}
    assert both["methods"] == {"dynatune 1"}
    assert "methods" not in kinds("--methods", "belief")


def test_on_curves_parts_that_would_never_run_are_left_out_and_named(
    landscapes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recorded search stands for all parts but the scheduler; in spaces each arm is itself."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    names = "auto,auto+sampler=diverse,chameleon,auto+evaluator=adaptive,dynatune-paper,oracle"
    given = ["--landscape", str(landscapes), "--out", str(tmp_path), "--seeds", "0", "--methods", names]
    found: dict[str, list[str]] = {}
    for part in replayed_parts(parser.parse_args(given), tmp_path):
        found.setdefault(part.key.layout, []).append(part.key.arm)
    assert found == {"curve": ["auto", "dynatune-paper", "oracle"], "space": names.split(",")[:-1]}
    (said,) = (line for line in capsys.readouterr().err.splitlines() if "left out" in line)
    assert said.startswith(
        "synthetic (curve): auto+sampler=diverse, chameleon, auto+evaluator=adaptive left out: what was"
    )
    assert "the search of auto" in said


def test_the_default_arms_of_curves_have_the_parts_of_what_is_recorded() -> None:
    best = METHODS[BEST.name]
    parts = {(arm.explorer, arm.sampler, arm.cost_model, arm.evaluator) for arm in map(arm_named, SCHEDULING)}
    assert parts == {(best.explorer, best.sampler, best.cost_model, best.evaluator)}


def test_regret_is_of_what_the_slots_measured(curves: Path, tmp_path: Path, run: Run) -> None:
    """Duplicates use up a plan and are no trials: a curve of trials would promise the oracle more than there is."""
    words = ("--landscape", curves, "--methods", "oracle,round_robin", "--seeds", "0", "--out", tmp_path)
    run(*words, "--trials-per-operator", 1000)
    (path,) = (tmp_path / "cells").glob("*round_robin-curve*.json")
    kept = json.loads(path.read_text())
    # When all is used up there is nothing left to regret.
    assert kept["reason"] == "exhausted"
    assert kept["regret"][-1][1] == pytest.approx(0.0, abs=1e-12)


def test_parts_with_other_parameters_are_timed_beside_their_like(landscapes: Path, tmp_path: Path, run: Run) -> None:
    arm = "autotvm+explorer.chains=8+explorer.steps=20"
    words = ("--landscape", landscapes, "--methods", arm, "--seeds", "0", "--out", tmp_path)
    code, said = run(*words, "--trials-per-operator", 40)
    assert code == 0
    assert arm in said
    (kept,) = tmp_path.glob("costs-*.json")
    before = kept.read_bytes()
    code, _ = run(*words, "--trials-per-operator", 41)
    assert code == 0
    assert kept.read_bytes() == before  # timed once: the cells of a comparison are charged alike


def test_what_another_process_timed_meanwhile_is_not_timed_again(
    landscapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = [arm_named("autotvm+explorer.chains=8+explorer.steps=20")]
    timed = sources(str(landscapes), None, arms, tmp_path)[0].costs
    (kept,) = tmp_path.glob("costs-*.json")
    theirs = kept.read_bytes()
    kept.unlink()

    class Waiting(MeasureLock):
        @contextmanager
        def exclusive(self) -> Iterator[float]:
            kept.write_bytes(theirs)
            yield 0.0

    monkeypatch.setattr(replayed, "MeasureLock", Waiting)
    assert sources(str(landscapes), None, arms, tmp_path)[0].costs.seconds == timed.seconds
    assert kept.read_bytes() == theirs


def test_a_cell_that_breaks_off_keeps_its_reason_and_the_others_go_on(
    curves: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--landscape", curves, "--methods", "round_robin", "--seeds", "0,1", "--trials-per-operator", 20)
    whole = replayed.run_cell

    def breaking(source: Source, chosen: Method, seed: int, *rest: Any) -> dict[str, Any]:
        if seed == 0:
            raise ZeroDivisionError("nothing was measured")
        return whole(source, chosen, seed, *rest)

    with monkeypatch.context() as broken:
        broken.setattr(replayed, "run_cell", breaking)
        assert run(*words, "--out", tmp_path)[0] == 1
    cells = {cell["key"]["seed"]: cell for cell in map(json.loads, map(Path.read_text, tmp_path.glob("cells/*.json")))}
    assert [cells[seed]["state"] for seed in (0, 1)] == ["failed", "done"]
    assert cells[0]["reason"].startswith("nothing was measured (see ")
    assert "breaking" in (tmp_path / "work" / Key(**cells[0]["key"]).digest / "failure").read_text()
    assert run(*words, "--out", tmp_path)[0] == 0


def test_a_live_cell_that_breaks_off_keeps_what_was_said_beside_its_failure(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Network(tmp_path / "net.onnx", "net", "ab" * 32, {})
    monkeypatch.setattr(parts, "all_opened", lambda files: [gone])
    monkeypatch.setattr(Machine, "here", lambda: Machine("A CPU", 2, {"kind": "llvm"}, 1e11, 1e10))
    words = ("--live", "--networks", gone.path, "--methods", "auto", "--seeds", "0", "--seconds", 1)
    assert run(*words, "--out", tmp_path / "out")[0] == 1
    (cell,) = (json.loads(path.read_text()) for path in (tmp_path / "out" / "cells").glob("*.json"))
    work = tmp_path / "out" / "work" / Key(**cell["key"]).digest
    assert cell["reason"].endswith(f"(see {work})")
    assert {"failure", "log"} <= {path.name for path in work.iterdir()}


def test_costs_of_another_machine_are_refused(landscapes: Path, tmp_path: Path) -> None:
    shutil.copytree(landscapes, tmp_path / "moved")
    Costs(costs().seconds, "another").write(tmp_path / "moved" / "costs.json")
    with pytest.raises(UserMistake, match="directory of its own"):
        sources(str(tmp_path / "moved"), None, [], tmp_path)


def test_of_what_a_walk_could_reach_the_share_is_told_as_a_run_tells_it() -> None:
    counts = dict.fromkeys(EFFECTS, 0) | {
        "slots": 20, "decided_by_belief": 10, "differs_from_round_robin": 15, "belief_differs": 8,
        "explorer": 100, "enumerated": 60, "reached": 30, "not_greedy": 25,
    }  # fmt: skip
    assert command._effects(counts, "dynatune", both=True) == ("50%, 75%, 40%", "75%, 25%")
    assert command._effects(counts, "dynatune", both=False) == ("50%, 75%, -", "75%, 25%")
    assert command._effects({**counts, "enumerated": 100}, "gradient", both=True) == ("-, 75%, -", "-, 25%")
    assert "explorer: 30 of 40 candidates" in effects_of({"search": {**counts, "evaluations": 1}})[0].text


def test_replays_fill_cells_pictures_and_claims_and_go_on(landscapes: Path, tmp_path: Path, run_and_draw: Run) -> None:
    words = ("--landscape", landscapes, "--out", tmp_path, "--methods", "sequential,dynatune,oracle,round_robin")
    code, said = run_and_draw(*words, "--seeds", "0")
    assert code == 0
    assert "dynatune" in said
    assert re.search(r"\d+% of \d+ slots", said)
    rows = [re.split(r"\s{2,}", line.strip()) for line in said.splitlines() if "(curve)" in line]
    scheduled = {arm: shares for _, arm, *_, shares, _ in rows}
    assert scheduled["sequential"] == scheduled["round_robin"] == "-, -, -", "they do not count it"
    assert re.fullmatch(r"\d+%, [1-9]\d*%, \d+%", scheduled["dynatune"]), "unlike round-robin"
    cells = sorted((tmp_path / "cells").glob("*.json"))
    assert len(cells) == 7  # the oracle needs curves
    before = {path: path.stat().st_mtime_ns for path in cells}
    code, _ = run_and_draw(*words, "--seeds", "0..1")
    assert code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list((tmp_path / "cells").glob("*.json"))) == 7 * 2
    report = json.loads((tmp_path / "report.json").read_text())
    assert {
        "latency-curve-synthetic.svg",
        "regret-curve-synthetic.svg",
        "time-curve.svg",
        "speeds-synthetic.svg",
        "belief-synthetic.svg",
        "chain-synthetic.svg",
        "clusters-synthetic-0.svg",
        "differences-synthetic-1.svg",
    } <= set(report["figures"])
    for name in report["figures"]:
        ElementTree.parse(tmp_path / "figures" / name)
    curve = next(json.loads(p.read_text()) for p in cells if "oracle" in p.name and "curve" in p.name)
    assert all(value >= 0 for _, value in curve["regret"])
    assert curve["trials"] >= curve["slots"]
    code, said = run_and_draw("--out", tmp_path, "--claims")
    assert code == 0
    assert "DynaTune 5.1" in said
    assert "not run" in said


def test_the_tables_say_what_their_medians_are_of(landscapes: Path, tmp_path: Path, run: Run) -> None:
    """Of two seeds one did not measure every operator, and one method is of older code."""
    words = ("--landscape", landscapes, "--methods", "round_robin,sequential", "--seeds", "0,1", "--out", tmp_path)
    run(*words)
    for path in (tmp_path / "cells").glob("*.json"):
        kept = json.loads(path.read_text())
        if kept["key"]["arm"] == "sequential":
            kept["key"]["version"] = "older"
        elif kept["key"]["seed"] == 1:
            kept.update(latency=None, curve=[])
        path.write_text(json.dumps(kept))
    code, said = run(*words)
    assert code == 0
    row = next(line.split() for line in said.splitlines() if line.startswith("synthetic (curve)  round_robin"))
    assert row[3:6] == ["1", "of", "2"]
    assert row[7] == "-"  # no interval of two seeds
    _, claimed = run("--out", tmp_path, "--claims")
    for text in (said, claimed):
        assert re.search(r"synthetic \(curve\): different versions of the code \(.*older: sequential", text)


def test_a_cell_of_a_landscape_is_the_same_every_time(landscapes: Path, tmp_path: Path, run: Run) -> None:
    """Whatever was played before it."""
    found = []
    for seeds in ("3,4", "4"):
        words = ("--landscape", landscapes, "--methods", "autotvm,dynatune", "--trials-per-operator", 60)
        run(*words, "--seeds", seeds, "--out", tmp_path / seeds)
        cells = {path.name: json.loads(path.read_text()) for path in (tmp_path / seeds / "cells").glob("*.json")}
        found.append({name: {k: v for k, v in c.items() if k not in ("ended", "wall")} for name, c in cells.items()})
    drawn = {path.stem for path in (tmp_path / "4" / "figures").glob("*.svg")}
    assert {"operator-time-space", "operator-final-space"} <= drawn
    assert not {"operator-time-curve", "operator-final-curve"} & drawn
    both, alone = found
    assert (len(both), len(alone)) == (8, 4)
    assert all(both[name] == cell for name, cell in alone.items())
    spaces = [cell for cell in both.values() if cell["key"]["layout"] == "space"]
    assert any(row["steps_to_best"] for cell in spaces for row in cell["operators"])


def test_the_oracle_is_no_worse_than_turns_on_curves(curves: Path, tmp_path: Path, run: Run) -> None:
    run("--landscape", curves, "--methods", "oracle,round_robin", "--seeds", "0..3", "--out", tmp_path)
    finals: dict[str, list[float]] = {}
    for path in (tmp_path / "cells").glob("*curve*.json"):
        kept = json.loads(path.read_text())
        finals.setdefault(kept["key"]["arm"], []).extend(value for _, value in kept["regret"])
    assert sum(finals["oracle"]) <= sum(finals["round_robin"])


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "--landscape"),
        (("--claims",), "holds no cells yet; name where to compare: --landscape DIR, or --live"),
        (("--landscape", "{empty}"), "landscape record"),
        (("--landscape", "{full}", "--networks", "vgg"), "vgg"),
        (("--landscape", "{full}", "--methods", "lottery"), "lottery"),
        (("--landscape", "{full}", "--seeds", "x"), "--seeds"),
        (("--landscape", "{full}", "--seconds", "5"), "--live"),
        (("--live", "--methods", "auto"), "--networks"),
        (("--live", "--methods", "auto", "--networks", "a.onnx"), "--seconds"),
        (
            ("--live", "--methods", "auto,oracle", "--networks", "a.onnx", "--seconds", "1"),
            "--methods oracle: the scheduler oracle is shown recorded curves, .*; compare it with `benchmark methods --land",
        ),
    ],
)
def test_a_mistake_names_the_value(
    landscapes: Path, tmp_path: Path, run: Run, words: tuple[str, ...], named: str
) -> None:
    (tmp_path / "empty").mkdir()
    filled = [word.format(empty=tmp_path / "empty", full=landscapes) for word in words]
    with pytest.raises(UserMistake, match=named):
        run(*filled, "--out", tmp_path / "out")


def test_a_seed_that_is_named_twice_is_one() -> None:
    assert seeds_of("2,0,2") == [2, 0]
    assert seeds_of("0..2") == [0, 1, 2]
