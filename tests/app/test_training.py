"""The pages of trainings: curves, the time-lapse, and a small run started from the page."""

import json
import math
import sys
import time

import pytest

from bert_tf.explain import fill_mask
from bert_tf.explain.timelapse import Series, course
from bert_tf.train.run import read_run
from tests.app.look import column, near, offered, settled
from tests.conftest import make_bert
from ui import runs, training

TEXT = "the cat sat on the mat . she ran in the park . "


@pytest.fixture(scope="session")
def run_folder(explorer_home):
    """A run of three snapshots of a small model in the folder of runs."""
    from bert_tf import checkpoints

    folder = explorer_home / "runs" / "mini"
    for step in (0, 10, 20):
        one = make_bert(seed=step, layers=2, hidden=16, heads=2, lower_case=True)
        checkpoints.save(folder / "snapshots" / f"step-{step}", one.config, one.tokenizer, one.model, "float16")
    records = [{"step": step, "loss": 9 - step / 10, "mlm_loss": 8.0, "nsp_loss": 0.7, "mlm_accuracy": step / 100,
                "nsp_accuracy": 0.5, "learning_rate": 1e-3, "tokens_per_second": 1234.0, "seconds_per_step": 0.5,
                "peak_share": 0.25, "time": 1.0} for step in (5, 10, 15, 20)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "settings.json").write_text(json.dumps({
        "settings": {"steps": 20, "size": "2x16x2", "batch_size": 8, "length": 32}, "corpus": {"tokens": 999}}))
    return folder


@pytest.fixture
def only_mini(run_folder, monkeypatch):
    """No shipped run but this one, so that nothing here hangs on what is shipped."""
    monkeypatch.setattr(runs, "SHIPPED", run_folder.parent)
    yield run_folder
    for name in list(training._started()):
        training.remove(name)


def said(app):
    return " ".join(block.value for block in [*app.markdown, *app.caption, *app.info, *app.warning])


def test_the_curves_have_the_figures_of_the_log(open_app, only_mini):
    app = open_app(page="training", **{"training.run": "mini"})
    assert not app.exception and not app.error
    assert app.selectbox(key="w_run").value == "mini"
    assert "loss **7.00**" in said(app) and "masked words right **20.0%**" in said(app)
    assert "**25%** of the machine's measured peak" in said(app)
    figures = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert [list(line["y"]) if isinstance(line["y"], list) else line["y"] for line in figures[1]["data"]][0] == [
        0.05, 0.1, 0.15, 0.2]


def test_the_time_lapse_says_what_the_library_says(open_app, only_mini):
    app = open_app(page="timelapse", a="the cat sat on the mat.", b="she ran.", mask="a1", **{"timelapse.run": "mini"})
    assert not app.exception and not app.error
    series = Series(read_run(only_mini).snapshots)
    moments = series.moments("the cat sat on the mat.", "she ran.", mask=["cat"])
    found = course(moments, series.tokenizer, 2)
    steps = [step for step in found.entered.values() if step is not None]
    text = said(app)
    assert "**cat**" in text and all(f"step {step}" in text for step in steps)
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert list(figure["data"][0]["y"]) == found.ranks.tolist()
    assert figure["data"][1]["y"] == pytest.approx([moment.trace.nsp.is_next for moment in moments], abs=1e-6)
    app.select_slider(key="w_timelapse_at").set_value(10).run()
    assert app.query_params["timelapse.at"] in (["10"], "10")
    assert fill_mask(moments[1].trace, series.tokenizer)[0].predictions


def test_the_lines_of_a_run_have_its_curves_and_its_snapshots_answers(open_app, only_mini):
    names = {}
    exec(open_app(page="training", **{"training.run": "mini"}).code[0].value, names)
    assert names["name"] == "learning_rate" and names["run"].curve("loss") == read_run(only_mini).curve("loss")
    link = {"timelapse.run": "mini", "timelapse.at": "10", "timelapse.layer": "2"}
    app = open_app(page="timelapse", a="the cat sat on the mat.", b="she ran.", mask="a1", **link)
    assert len(app.code) == 1
    exec(app.code[0].value, names)
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert list(figure["data"][0]["y"]) == names["followed"].ranks.tolist()
    assert names["moments"][1].trace is names["trace"] and "trace.attentions[1, 0]" in app.code[0].value
    app.select_slider(key="w_timelapse_at").set_value(0).run()
    assert "one.step == 0" in app.code[0].value


def test_the_lines_of_two_snapshots_load_them_from_the_folder_of_runs(open_app, only_mini, monkeypatch):
    link = {"compare.one": "mini/step-0", "compare.other": "mini/step-20"}
    app = open_app(page="compare", a="the cat sat on the mat.", mask="a1", **link)
    assert not app.exception and not app.error
    names = {}
    monkeypatch.chdir(only_mini.parent)
    exec(app.code[0].value, names)
    shown = next(frame.value for frame in app.dataframe if "divergence" in frame.value)
    assert list(shown["divergence"]) == pytest.approx([mask.divergence for mask in names["found"].masks], abs=1e-5)
    assert "'mini/snapshots/step-20'" in app.code[0].value


def test_the_time_lapse_plays_to_its_end(open_app, only_mini, monkeypatch):
    monkeypatch.setattr("pages.timelapse._PLAY", 3600)
    app = open_app(page="timelapse", a="the cat sat.", mask="a1", **{"timelapse.run": "mini"})
    app.button(key="w_timelapse_play").click().run()
    assert app.select_slider(key="w_timelapse_at").value == 0
    monkeypatch.setattr("pages.timelapse._PLAY", 1e-3)
    for step in (10, 20):
        app.run()
        assert app.select_slider(key="w_timelapse_at").value == step
    app.run()
    assert app.button(key="w_timelapse_play").label == "Play"


def test_nothing_masked_and_nothing_there_are_said(open_app, only_mini, monkeypatch, tmp_path):
    app = open_app(page="timelapse", a="the cat sat.", **{"timelapse.run": "mini"})
    assert "Nothing is hidden" in said(app) and not app.exception
    monkeypatch.setattr(runs, "SHIPPED", tmp_path)
    monkeypatch.setattr(runs, "folder", lambda: tmp_path / "none")
    assert "no training to look at" in said(open_app(page="timelapse", a="x"))
    assert "no training here yet" in said(open_app(page="training"))


def test_a_link_opens_no_folder_of_its_own(open_app, only_mini):
    app = open_app(page="training", **{"training.run": "../../etc"})
    assert app.selectbox(key="w_run").value == "mini" and not app.exception


@pytest.mark.parametrize("text, steps, words", [
    ("word " * 10, 10, "10 words; give at least 300"),
    ("word " * 200_000, 10, "1,000,000 characters; at most 500,000"),
    ("word " * 400, 5000, "5,000 steps were asked for; at most 2,000"),
])
def test_the_limits_bound_a_training(only_mini, text, steps, words):
    with pytest.raises(ValueError, match=words):
        training.start(text, steps, 1e-3, False)
    assert not training._started()


def _until(name, *wanted, patience=240):
    end = time.monotonic() + patience
    while training.started(name).status not in wanted:
        assert training.started(name).status != "failed", training.started(name).problem
        assert time.monotonic() < end, training.started(name).status
        time.sleep(0.1)


def test_a_training_is_paused_goes_on_and_ends(only_mini):
    # Paragraphs in documents; the small vocabulary of the shipped stand-in reads all of it.
    name = training.start("\n\n".join([TEXT * 4] * 40), 40, 1e-3, True)
    folder = runs.folder() / name
    assert runs.folder() in folder.parents and name in runs.runs()
    with pytest.raises(ValueError, match="Another training is running"):
        training.start("word " * 400, 10, 1e-3, False)
    _until(name, "running")
    while read_run(folder).step < 3:
        _until(name, "running")
        time.sleep(0.05)
    training.started(name).end("pause")
    _until(name, "paused", "done")
    paused = read_run(folder).step
    training.go_on(name)
    _until(name, "done")
    run = read_run(folder)
    assert run.step == 40 and paused >= 3 and math.isfinite(run.records[-1]["loss"])
    training.remove(name)
    assert not folder.exists() and name not in runs.runs()


def test_a_training_that_fails_says_why(tmp_path):
    failing = training.Training(tmp_path, ["pretrain", "--size", "tiny", "--steps", "many"], 60)
    end = time.monotonic() + 60
    while failing.status == "running" and time.monotonic() < end:
        time.sleep(0.05)
    assert failing.status == "failed" and "argument --steps: invalid int value: 'many'" in failing.problem


def test_a_training_that_was_stopped_from_elsewhere_has_not_failed(tmp_path):
    stopped = training.Training(tmp_path, ["--version"], 60)
    stopped.kill()
    stopped._command = [sys.executable, "-c", "import sys; sys.exit(143)"]
    stopped.go_on()
    end = time.monotonic() + 60
    while stopped.status == "running" and time.monotonic() < end:
        time.sleep(0.05)
    assert stopped.status == "stopped" and stopped.problem is None


def test_the_curves_are_saved(open_app, only_mini, saved):
    offered(settled(open_app(page="training", **{"training.run": "mini"})), saved, ("mini",))
    assert column(saved["mini"], "loss") == [8.5, 8.0, 7.5, 7.0]
    assert saved["mini"]["npz"]["mlm_accuracy"].tolist() == [0.05, 0.1, 0.15, 0.2]
    assert saved["mini"]["figures"].keys() == {"Loss", "Accuracy", "Learning rate"}


def test_the_time_lapse_is_saved(open_app, only_mini, saved):
    app = open_app(page="timelapse", a="the cat sat on the mat.", b="she ran.", mask="a1", **{"timelapse.run": "mini"})
    offered(settled(app), saved, ("time-lapse", "layer-1-head-1"))
    series = Series(read_run(only_mini).snapshots)
    moments = series.moments("the cat sat on the mat.", "she ran.", mask=["cat"])
    found = course(moments, series.tokenizer, 2)
    near(saved["time-lapse"]["npz"]["probabilities"], [found.probabilities])
    near(column(saved["time-lapse"], "cat_rank"), found.ranks)
    near(column(saved["time-lapse"], "B follows A"), [moment.trace.nsp.is_next for moment in moments])
    near(saved["layer-1-head-1"]["npz"]["weights"], moments[-1].trace.attentions[:1, 0], 1e-3)
