"""The benchmark of the objectives: how many updates each gets when all are given the same time."""

import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
COSTS = {"mlm+nsp (BERT)": 0.2, "mlm, full sentences (RoBERTa)": 0.1, "replaced tokens (ELECTRA)": 0.5}
SETUPS = ["none", *list(COSTS)[1:]]


@pytest.fixture
def objectives(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    import objectives

    return objectives


@pytest.fixture
def options(tmp_path):
    return Namespace(ways=SETUPS, steps=1000, equal="compute", output=tmp_path)


def test_a_way_that_costs_less_gets_more_updates(objectives, options, monkeypatch):
    asked = []
    monkeypatch.setattr(objectives, "cost", lambda way, _: asked.append(way) or COSTS[way])
    wanted = {"none": 1000, "mlm, full sentences (RoBERTa)": 2000, "replaced tokens (ELECTRA)": 400}
    assert objectives.plan(options) == wanted
    # BERT's way is what the others are weighed by, also where it is not among them.
    assert sorted(asked) == sorted(COSTS) and json.loads((options.output / "costs.json").read_text()) == COSTS
    # What was measured before counts, so that a stopped benchmark goes on with the same plan.
    monkeypatch.setattr(objectives, "cost", lambda *_: pytest.fail("measured again"))
    assert objectives.plan(options) == wanted


def test_with_equal_tokens_all_get_the_same_and_nothing_is_measured(objectives, options, monkeypatch):
    monkeypatch.setattr(objectives, "cost", lambda *_: pytest.fail("measured"))
    options.equal = "tokens"
    assert objectives.plan(options) == dict.fromkeys(SETUPS, 1000)


def test_the_cost_of_an_update_leaves_out_the_first_ones(objectives, options, monkeypatch):
    seconds = {10: 9.0, 20: 1.0, 30: 0.3, 40: 0.5, 50: 0.4, 60: 0.4}
    monkeypatch.setattr(objectives, "_pretrain", lambda *_: None)
    monkeypatch.setattr(
        objectives, "_records", lambda run: [{"step": at, "seconds_per_step": one} for at, one in seconds.items()]
    )
    assert objectives.cost("mlm+nsp (BERT)", options) == pytest.approx(0.4)
