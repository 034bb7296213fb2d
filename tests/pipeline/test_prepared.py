"""A run's libraries are there before its clock starts, and no others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK = {"explorer.episodes": "16", "explorer.together": "8", "explorer.steps": "8", "explorer.minibatch": "64"}
WALK = {"explorer.chains": "16", "explorer.steps": "20"}
RUN = """
import json, sys
from tests.pipeline.simulated_run import OPERATORS, Simulation
from workers.engine.methods import method
from workers.messages.spec import Budget

LIBRARIES = {"xgboost", "scipy.special", "scipy.optimize", "scipy.stats", "sklearn.tree", "sklearn.cluster", "torch"}
name, parts, prepared = json.loads(sys.argv[1])
chosen = method(name, parts)
found = [sorted(LIBRARIES & set(sys.modules))]
if prepared:
    chosen.prepare()
    found.append(sorted(LIBRARIES & set(sys.modules)))
Simulation(chosen, Budget(trials=100), operators=OPERATORS[:1]).run()
print(json.dumps([*found, sorted(LIBRARIES & set(sys.modules))]))
"""


@pytest.mark.parametrize(
    ("name", "parts"),
    [("auto", WALK), ("chameleon", QUICK), ("adatune", WALK), ("random", {})],
    ids=["auto", "chameleon", "adatune", "random"],
)
def test_what_a_method_prepares_is_what_its_run_loads(name: str, parts: dict[str, str]) -> None:
    orders = [json.dumps([name, parts, prepared]) for prepared in (True, False)]
    runs = [
        subprocess.Popen([sys.executable, "-c", RUN, order], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for order in orders
    ]
    (first, prepared, whole), (_, loaded) = [json.loads(run.communicate(timeout=200)[0]) for run in runs]
    assert first == []
    assert prepared == whole == loaded
    assert bool(prepared) == (name != "random")
