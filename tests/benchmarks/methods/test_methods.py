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
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.methods.finished import FAST, SLOW, cell
from tests.landscapes.recorded import costs, curve_recording, space_recording
from workers.benchmarks.methods import command
from workers.benchmarks.methods.arms import SCHEDULING, SEARCHING, arm_named, definition, spelled
from workers.benchmarks.methods.claims import CLAIMS, Claim, evaluated, table
from workers.benchmarks.methods.compare import grouped, held, summary, time_to_same
from workers.benchmarks.methods.parts import replayed_parts
from workers.benchmarks.methods.probes import PROBES
from workers.benchmarks.methods.replayed import slot_ends, sources
from workers.engine.methods import BEST, Rhythm
from workers.headless.errors import UserMistake
from workers.landscapes import Costs, CurveRecording

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
def run(capsys: pytest.CaptureFixture[str]) -> Run:
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
    told = [cell(SLOW["curve"], key={"arm": "dynatune", "seed": s}, foretold=200, held=168) for s in range(3)]
    assert held(told[0], told[0]) == [0.84]
    assert held(SLOW, SLOW) == []
    (row,) = (row for row in evaluated(told) if row["source"] == "DynaTune 4.3")
    assert (row["holds"], row["target"]) == (True, ">= 0.70 everywhere, <= 0.90, of >= 500")
    assert row["events"] == 600
    (row,) = (row for row in evaluated(told[:2]) if row["source"] == "DynaTune 4.3")
    assert (row["holds"], row["events"]) == (None, 400)
    (row,) = summary(told)
    assert (row["held"], row["foretold"]) == (504, 600)


@pytest.mark.parametrize(
    ("medians", "limits", "holds"),
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
    ],
)
def test_a_claim_holds_when_its_target_is_met(medians: list[float], limits: dict[str, float], holds: bool) -> None:
    claim = Claim("paper", "text", "-", "a", "b", time_to_same, ("curve",), **limits)  # type: ignore[arg-type]
    assert claim.holds(medians) is holds


def test_every_claim_has_a_row_and_what_has_no_cells_is_not_run() -> None:
    rows = evaluated([SLOW, FAST])
    assert len(rows) == len(CLAIMS) + 2  # and whether the recommended method is the best, on the one kind there is
    assert rows[0]["networks"]["net (curve)"]["median"] == pytest.approx(80 / 60)  # to the very latency
    assert rows[1]["networks"]["net (curve)"]["median"] == 2.0  # to within 1 %
    assert rows[1]["holds"] is False  # 2.0 is not 2.4
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


@pytest.mark.mutation
def test_an_arm_that_is_its_base_claims_nothing() -> None:
    rows = evaluated([SLOW, cell(SLOW["curve"], key={"arm": "dynatune"})])
    assert rows[0]["networks"]["net (curve)"]["median"] == 1.0
    assert rows[0]["holds"] is False


def test_arms_are_presets_schedulers_and_parts() -> None:
    assert arm_named("gradient").scheduler == "gradient"
    assert arm_named("random_slots").scheduler == "random"
    found = arm_named("autotvm+sampler=adaptive")
    assert (found.name, found.sampler, found.scheduler) == ("autotvm+sampler=adaptive", "adaptive", "sequential")
    assert definition(found) != definition(arm_named("autotvm"))
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
    ):
        with pytest.raises(UserMistake, match="--methods"):
            arm_named(wrong)


def test_the_default_arms_exist() -> None:
    for name in (*SCHEDULING, *SEARCHING):
        assert arm_named(name).name == name


def test_the_claims_arms_are_compared_by_default() -> None:
    arms = {arm for claim in CLAIMS for arm in (claim.arm, claim.base)}
    assert arms <= {*SCHEDULING, *SEARCHING, *PROBES}
    assert not {*SCHEDULING, *SEARCHING} & PROBES.keys()
    assert BEST.name in SCHEDULING
    assert BEST.name in SEARCHING


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
    assert probed == {"timings 1", *(f"{n} {s}" for n in ("evaluators", "surrogate", "decisions") for s in (1, 2))}
    assert "probe" not in kinds("--methods", "dynatune")


def test_regret_is_of_what_the_slots_measured(curves: Path, tmp_path: Path, run: Run) -> None:
    """Duplicates use up a plan and are no trials: a curve of trials would promise the oracle more than there is."""
    run("--landscape", curves, "--methods", "oracle,round_robin", "--seeds", "0", "--out", tmp_path)
    for path in (tmp_path / "cells").glob("*round_robin-curve*.json"):
        kept = json.loads(path.read_text())
        # When all is used up there is nothing left to regret.
        assert kept["reason"] in ("exhausted", "trials")
        if kept["reason"] == "exhausted":
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


def test_costs_of_another_machine_are_refused(landscapes: Path, tmp_path: Path) -> None:
    shutil.copytree(landscapes, tmp_path / "moved")
    Costs(costs().seconds, "another").write(tmp_path / "moved" / "costs.json")
    with pytest.raises(UserMistake, match="directory of its own"):
        sources(str(tmp_path / "moved"), None, [], tmp_path)


def test_replays_fill_cells_pictures_and_claims_and_go_on(landscapes: Path, tmp_path: Path, run: Run) -> None:
    words = ("--landscape", landscapes, "--out", tmp_path, "--methods", "sequential,dynatune,oracle,round_robin")
    code, said = run(*words, "--seeds", "0")
    assert code == 0
    assert "dynatune" in said
    assert re.search(r"\d+% of \d+ slots", said)
    cells = sorted((tmp_path / "cells").glob("*.json"))
    assert len(cells) == 7  # the oracle needs curves
    before = {path: path.stat().st_mtime_ns for path in cells}
    code, _ = run(*words, "--seeds", "0..1")
    assert code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list((tmp_path / "cells").glob("*.json"))) == 7 * 2
    report = json.loads((tmp_path / "report.json").read_text())
    assert {
        "latency-curve-synthetic.svg",
        "regret-curve-synthetic.svg",
        "time-curve.svg",
        "equal-time-curve.svg",
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
    code, said = run("--out", tmp_path, "--claims")
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
        words = ("--landscape", landscapes, "--methods", "autotvm,dynatune", "--trials-per-operator", 150)
        run(*words, "--seeds", seeds, "--out", tmp_path / seeds)
        cells = {path.name: json.loads(path.read_text()) for path in (tmp_path / seeds / "cells").glob("*.json")}
        found.append({name: {k: v for k, v in c.items() if k not in ("ended", "took")} for name, c in cells.items()})
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
        (("--landscape", "{empty}"), "landscape record"),
        (("--landscape", "{full}", "--networks", "vgg"), "vgg"),
        (("--landscape", "{full}", "--methods", "lottery"), "lottery"),
        (("--landscape", "{full}", "--seeds", "x"), "--seeds"),
        (("--landscape", "{full}", "--seconds", "5"), "--live"),
        (("--live", "--methods", "auto"), "--networks"),
        (("--live", "--methods", "auto", "--networks", "a.onnx"), "--seconds"),
    ],
)
def test_a_mistake_names_the_value(
    landscapes: Path, tmp_path: Path, run: Run, words: tuple[str, ...], named: str
) -> None:
    (tmp_path / "empty").mkdir()
    filled = [word.format(empty=tmp_path / "empty", full=landscapes) for word in words]
    with pytest.raises(UserMistake, match=named):
        run(*filled, "--out", tmp_path / "out")
