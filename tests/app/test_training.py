"""The pages of trainings: curves, the time-lapse, and a small run started from the page."""

import json
import math
import os
import shutil
import sys
import threading
import time
import types

import pytest

from bert_tf.explain.models.snapshot_series import SnapshotSeries
from bert_tf.explain.models.time_lapse import token_trajectory
from bert_tf.inference.predictions import fill_mask
from bert_tf.training.run_folder import read_run
from tests.app.page_reading import (
    PATIENCE,
    away_and_back,
    column,
    near,
    offered,
    page_text,
    run_until_done,
    walk,
)
from tests.conftest import make_bert
from ui import ownership
from ui.session import (
    runs,
    snapshot_store,
    state,
    training_jobs,
)

TEXT = "the cat sat on the mat . she ran in the park . "


@pytest.fixture(scope="session")
def run_folder(explorer_home):
    """A run of three snapshots of a small model in the folder of runs."""
    from bert_tf import checkpoints

    folder = explorer_home / "runs" / "mini"
    for step in (0, 10, 20):
        one = make_bert(seed=step, layers=2, hidden=16, heads=2, lower_case=True)
        checkpoints.save(folder / "snapshots" / f"step-{step}", one.config, one.tokenizer, one.model, "float16")
    records = [
        {
            "step": step,
            "loss": 9 - step / 10,
            "mlm_loss": 8.0,
            "nsp_loss": 0.7,
            "mlm_accuracy": step / 100,
            "nsp_accuracy": 0.5,
            "learning_rate": 1e-3,
            "tokens_per_second": 1234.0,
            "seconds_per_step": 0.5,
            "peak_share": 0.25,
            "time": 1.0,
        }
        for step in (5, 10, 15, 20)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "settings.json").write_text(
        json.dumps(
            {"settings": {"steps": 20, "size": "2x16x2", "batch_size": 8, "length": 32}, "corpus": {"tokens": 999}}
        )
    )
    return folder


@pytest.fixture
def only_mini(run_folder, monkeypatch):
    """No shipped run but this one, so that nothing here hangs on what is shipped."""
    monkeypatch.setattr(runs, "SHIPPED", run_folder.parent)
    # Beside other tests they would hardly run.
    monkeypatch.setattr(training_jobs, "lower_priority", lambda process: None)
    yield run_folder
    for name in list(training_jobs._started()):
        training_jobs.remove(name)


def text_of(app):
    return " ".join(block.value for block in [*app.markdown, *app.caption, *app.info, *app.warning])


def test_the_curves_have_the_figures_of_the_log(open_app, only_mini):
    app = open_app(page="training_curves", **{"training_curves.run": "mini"})
    assert not app.exception and not app.error
    assert app.selectbox(key="w_run").value == "mini"
    assert "loss **7.00**" in text_of(app) and "masked words right **20.0%**" in text_of(app)
    assert "**25%** of the machine's measured peak" in text_of(app)
    assert "from random weights (2 layers of 16, 2 heads) · 8 sequences of 32 tokens a step" in text_of(app).replace(
        "\\", ""
    )
    figures = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert [list(line["y"]) if isinstance(line["y"], list) else line["y"] for line in figures[1]["data"]][0] == [
        0.05,
        0.1,
        0.15,
        0.2,
    ]


def test_the_time_lapse_says_what_the_library_says(open_app, only_mini):
    app = open_app(
        page="time_lapse", a="the cat sat on the mat.", b="she ran.", mask="a1", **{"time_lapse.run": "mini"}
    )
    assert not app.exception and not app.error
    series = SnapshotSeries(read_run(only_mini).snapshots)
    snapshot_traces = series.snapshot_traces("the cat sat on the mat.", "she ran.", mask=["cat"])
    actual = token_trajectory(snapshot_traces, series.tokenizer, 2)
    steps = [step for step in actual.first_step_within_rank.values() if step is not None]
    text = text_of(app)
    assert "**cat**" in text and all(f"step {step}" in text for step in steps)
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert list(figure["data"][0]["y"]) == actual.ranks.tolist()
    assert figure["data"][1]["y"] == pytest.approx([moment.trace.nsp.is_next for moment in snapshot_traces], abs=1e-6)
    app.select_slider(key="w_time_lapse_at").set_value(10).run()
    assert app.query_params["time_lapse.at"] in (["10"], "10")
    assert fill_mask(snapshot_traces[1].trace, series.tokenizer)[0].predictions


def test_the_lines_of_a_run_have_its_curves_and_its_snapshots_answers(open_app, only_mini):
    names = {}
    exec(open_app(page="training_curves", **{"training_curves.run": "mini"}).code[0].value, names)
    assert names["name"] == "learning_rate" and names["run"].curve("loss") == read_run(only_mini).curve("loss")
    link = {"time_lapse.run": "mini", "time_lapse.at": "10", "time_lapse.layer": "2"}
    app = open_app(page="time_lapse", a="the cat sat on the mat.", b="she ran.", mask="a1", **link)
    assert len(app.code) == 1
    drawn = list(app.main)
    assert [one.type for one in drawn].index("code") > max(at for at, one in enumerate(drawn) if one.type == "caption")
    exec(app.code[0].value, names)
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert list(figure["data"][0]["y"]) == names["followed"].ranks.tolist()
    assert names["moments"][1].trace is names["trace"] and "trace.attentions[1, 0]" in app.code[0].value
    app.select_slider(key="w_time_lapse_at").set_value(0).run()
    assert "one.step == 0" in app.code[0].value


def test_the_lines_of_two_snapshots_load_them_from_the_folder_of_runs(open_app, only_mini, monkeypatch):
    link = {"side_by_side.one": "mini/step-0", "side_by_side.other": "mini/step-20"}
    app = open_app(page="side_by_side", a="the cat sat on the mat.", mask="a1", **link)
    assert not app.exception and not app.error
    names = {}
    monkeypatch.chdir(only_mini.parent)
    exec(app.code[0].value, names)
    table = next(frame.value for frame in app.dataframe if "divergence" in frame.value)
    assert list(table["divergence"]) == pytest.approx([mask.divergence for mask in names["result"].masks], abs=1e-5)
    assert "'mini/snapshots/step-20'" in app.code[0].value


def test_the_time_lapse_plays_to_its_end(open_app, only_mini, monkeypatch):
    monkeypatch.setattr("pages.training.time_lapse._PLAY", 3600)
    app = open_app(page="time_lapse", a="the cat sat.", mask="a1", **{"time_lapse.run": "mini"})
    app.button(key="w_time_lapse_play").click().run()
    assert app.select_slider(key="w_time_lapse_at").value == 0
    monkeypatch.setattr("pages.training.time_lapse._PLAY", 1e-3)
    for step in (10, 20):
        app.run()
        assert app.select_slider(key="w_time_lapse_at").value == step
    app.run()
    assert app.button(key="w_time_lapse_play").label == "Play"


def test_nothing_masked_and_nothing_there_are_said(open_app, only_mini, monkeypatch, tmp_path):
    app = open_app(page="time_lapse", a="the cat sat.", **{"time_lapse.run": "mini"})
    assert "Nothing is hidden" in text_of(app) and not app.exception
    monkeypatch.setattr(runs, "SHIPPED", tmp_path)
    monkeypatch.setattr(runs, "folder", lambda: tmp_path / "none")
    assert "no training to look at" in text_of(open_app(page="time_lapse", a="x"))
    app = open_app(page="training_curves")
    assert "no training here yet. Start one below" in text_of(app) and not app.exception
    (form,) = [one for one in app.expander if one.label.startswith("Train a small model")]
    assert form.proto.expanded and app.button(key="w_training_curves_start")
    assert not [
        one for one in app.button_group if one.key == "w_training_curves_begin"
    ]  # no shipped model to go on from
    assert "with the vocabulary of tiny-cased" in text_of(app).replace("\\", "")


def test_a_link_opens_no_folder_of_its_own(open_app, only_mini):
    app = open_app(page="training_curves", **{"training_curves.run": "../../etc"})
    assert app.selectbox(key="w_run").value == "mini" and not app.exception


@pytest.mark.parametrize("page", ["training_curves", "time_lapse"])
def test_a_link_to_a_training_that_is_gone_says_which_is_shown(page, open_app, only_mini):
    app = open_app(page=page, a="the cat sat.", **{f"{page}.run": "gone"})
    assert "The link asks for the training “gone”, which is not here. mini is used." in [
        one.value for one in app.warning
    ]


@pytest.mark.parametrize(
    "text, steps, words",
    [
        ("word " * 10, 10, "10 words; give at least 300"),
        ("word " * 200_000, 10, "1,000,000 characters; at most 500,000"),
        ("word " * 400, 5000, "The number of steps must be 1 to 2,000 here, not 5,000"),
    ],
)
def test_the_limits_bound_a_training(only_mini, text, steps, words):
    with pytest.raises(ValueError, match=words):
        training_jobs.start(text, steps, 1e-3, False)
    assert not training_jobs._started()


def _until(name, *wanted):
    end = time.monotonic() + PATIENCE
    while training_jobs.started(name).status not in wanted:
        assert training_jobs.started(name).status != "failed", training_jobs.started(name).problem
        assert time.monotonic() < end, training_jobs.started(name).status
        time.sleep(0.1)


def test_a_training_is_paused_goes_on_and_ends(only_mini):
    # Paragraphs in documents; the small vocabulary of the shipped stand-in reads all of it.
    name = training_jobs.start("\n\n".join([TEXT * 4] * 40), 190, 1e-3, True)
    folder = runs.folder() / name
    assert runs.folder() in folder.parents and name in runs.runs()
    with pytest.raises(ValueError, match="Another training is running"):
        training_jobs.start("word " * 400, 10, 1e-3, False)
    _until(name, "running")
    while read_run(folder).step < 3:
        _until(name, "running")
        time.sleep(0.05)
    training_jobs.started(name).end("pause")
    _until(name, "paused", "done")
    paused = read_run(folder).step
    # Another server goes on with it.
    training_jobs._started().clear()
    log = folder / "metrics.jsonl"
    log.write_text(log.read_text().replace('"time": 1', '"time": -1'))  # long ago
    os.utime(folder / "settings.json", (1, 1))
    assert training_jobs.started(name).status == "paused" and training_jobs.started("mini") is None
    training_jobs.go_on(name)
    _until(name, "done")
    run = read_run(folder)
    assert run.step == 190 and paused >= 3 and math.isfinite(run.records[-1]["loss"])
    training_jobs.remove(name)
    assert not folder.exists() and name not in runs.runs()


def test_a_training_that_fails_says_why(tmp_path):
    failing = training_jobs.Training(tmp_path, ["pretrain", "--size", "tiny", "--steps", "many"], 2 * PATIENCE)
    end = time.monotonic() + PATIENCE
    while failing.status == "running" and time.monotonic() < end:
        time.sleep(0.05)
    assert failing.status == "failed" and "argument --steps: invalid whole number value: 'many'" in failing.problem


def test_a_training_starts_on_a_system_without_the_priorities_of_unix(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "setpriority")
    training = training_jobs.Training(tmp_path, ["--version"], PATIENCE)
    assert training.status in ("running", "done")
    training.kill()


def test_a_training_that_was_stopped_from_elsewhere_has_not_failed(tmp_path):
    stopped = training_jobs.Training(tmp_path, ["--version"], 2 * PATIENCE)
    stopped.kill()
    stopped._command = [sys.executable, "-c", "import sys; sys.exit(143)"]
    stopped.go_on()
    end = time.monotonic() + PATIENCE
    while stopped.status == "running" and time.monotonic() < end:
        time.sleep(0.05)
    assert stopped.status == "stopped" and stopped.problem is None


def test_a_training_is_stopped_when_its_time_is_over(tmp_path):
    long = training_jobs.Training(tmp_path, ["--version"], 1)
    long.kill()
    long._command = [sys.executable, "-c", "import time; time.sleep(600)"]
    long.go_on()
    assert long.status == "running"
    end = time.monotonic() + PATIENCE
    while long.status in ("running", "ending") and time.monotonic() < end:
        time.sleep(0.05)
    assert long.status == "stopped" and long.problem is None


def test_a_killed_training_says_that_it_was_killed(tmp_path):
    (tmp_path / "output.log").write_text("step 90/100  loss 6.1  mlm 0.112\n")
    killed = training_jobs.Training(tmp_path, ["pretrain", "--help"], 60)
    killed._process.kill()
    killed._process.wait()
    assert killed.status == "failed"
    assert (
        killed.problem == "The training was ended from outside (SIGKILL); the system does this when no memory is left."
    )


@pytest.fixture
def begun(only_mini, monkeypatch):
    """The options of the trainings that would have begun, in order; none does."""
    results = []

    def made(folder, arguments, seconds, last_status=None):
        results.append([str(one) for one in arguments])
        return types.SimpleNamespace(
            folder=folder, status=last_status or "done", kill=lambda: None, problem=None, owner=None, began=None
        )

    monkeypatch.setattr(training_jobs, "Training", made)
    return results


def _option(arguments, name):
    return arguments[arguments.index(name) + 1]


@pytest.mark.parametrize("repeats, documents", [(25, 2), (30, 9), (12, 3), (28, 56)])
def test_a_text_is_taken_in_batches_that_it_can_fill(repeats, documents, begun, tmp_path):
    from bert_tf.pretraining.data.corpus import prepare_corpus
    from bert_tf.pretraining.data.feed import Feed
    from bert_tf.tokenizers import read_tokenizer

    words = (TEXT * repeats).split(" . ")
    each = max(1, len(words) // documents)
    text = "\n\n".join(" . ".join(words[first : first + each]) + " ." for first in range(0, len(words), each))
    text = text if len(text.split()) >= 300 else "\n\n".join([text] * 3)
    training_jobs.start(text, 10, 1e-3, False)
    size = int(_option(begun[0], "--batch-size"))
    tokenizer = read_tokenizer(_option(begun[0], "--vocab"))
    corpus = prepare_corpus([_option(begun[0], "--text")], tokenizer, tmp_path)
    feed = iter(Feed(corpus, tokenizer, size, int(_option(begun[0], "--length"))))
    for _ in range(200):
        batch, position = next(feed)
    assert batch["token_ids"].shape == (size, 64) and position.epoch > 0
    # One more than the text gives would not do, unless it is as many as a step takes at most.
    assert size == 16 or size >= corpus.document_tokens.sum() // 64 // 2


def test_a_text_of_one_document_is_refused_with_what_to_do(begun):
    with pytest.raises(ValueError, match="one document.*Put a blank line between its parts"):
        training_jobs.start(TEXT * 40, 10, 1e-3, False)
    assert not begun


def test_without_the_shipped_run_the_default_models_vocabulary_is_taken(begun, monkeypatch, tmp_path, explorer_home):
    monkeypatch.setattr(runs, "SHIPPED", tmp_path / "none")
    training_jobs.start("\n\n".join([TEXT * 4] * 10), 10, 1e-3, False)
    assert _option(begun[0], "--vocab") == str(explorer_home / "tiny-cased")


@pytest.fixture
def kept_runs(only_mini):
    """Folders that an earlier server left: a run at half of its steps, one that is done, one with nothing but its
    log."""
    import shutil

    made = []
    for name, step in (("own-half", 5), ("own-done", 10), ("own-bare", 0)):
        folder = only_mini.parent / name
        folder.mkdir()
        made.append(folder)
        records = [{"step": at, "seconds_per_step": 60.0, "time": 1.0} for at in range(1, step + 1)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
        (folder / "text.txt").write_text(TEXT)
        settings = {"steps": 10, "batch_size": 7, "learning_rate": 1e-3, "size": "2x128x2", "init": None}
        if step:
            (folder / "settings.json").write_text(json.dumps({"settings": settings}))
        for path in folder.iterdir():
            os.utime(path, (1, 1))
    yield made
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)


def test_what_an_earlier_server_left_is_taken_up_from_its_files(open_app, kept_runs, begun):
    half, done, bare = (training_jobs.started(folder.name) for folder in kept_runs)
    assert (half.status, done.status, bare.status) == ("paused", "done", "stopped")
    assert _option(begun[0], "--batch-size") == "7" and _option(begun[0], "--steps") == "10"
    assert _option(begun[0], "--size") == "2x128x2" and "--init" not in begun[0]
    assert training_jobs.started("own-none") is None and training_jobs.started("mini") is None
    app = open_app(page="training_curves", **{"training_curves.run": "own-half"})
    assert [one.label for one in app.button if one.key.startswith("w_training_curves_")][:3] == [
        "Go on",
        "Stop",
        "Delete it",
    ]
    app = open_app(page="training_curves", **{"training_curves.run": "own-bare"})
    assert "The run ended before its first log record." in text_of(app)
    app.button(key="w_training_curves_Delete").click().run()
    assert not app.exception and not kept_runs[2].exists() and "own-bare" not in runs.runs()


def test_time_that_an_earlier_server_gave_counts(kept_runs, monkeypatch):
    commands = []
    monkeypatch.setattr(training_jobs, "Training", lambda *page_text: commands.append(page_text))
    training_jobs.started("own-half")
    assert commands[0][2] == 60 * state.limits().max_minutes - 5 * 60 and commands[0][3] == "paused"


def test_a_run_that_another_server_trains_is_only_watched(kept_runs, open_app):
    os.utime(kept_runs[2] / "metrics.jsonl")
    assert training_jobs.started("own-bare") is None
    app = open_app(page="training_curves", **{"training_curves.run": "own-bare"})
    assert "the first numbers come in a moment" in text_of(app)
    assert "w_training_curves_Delete" not in [one.key for one in app.button]


def test_no_more_runs_are_kept_than_the_limits_say(only_mini, begun):
    folders = [only_mini.parent / f"own-{number}" for number in range(state.limits().max_trainings)]
    for folder in folders:
        folder.mkdir()
    try:
        with pytest.raises(ValueError, match="There are 8 trainings on visitors' texts here.*delete it first"):
            training_jobs.start("\n\n".join([TEXT * 4] * 10), 10, 1e-3, False)
    finally:
        for folder in folders:
            folder.rmdir()


def test_a_run_is_deleted_by_a_second_press(open_app, kept_runs):
    app = open_app(page="training_curves", **{"training_curves.run": "own-half"})
    popover = next(block for block in walk(app._tree.root) if getattr(block, "type", "") == "popover")
    assert app.button(key="w_training_curves_Delete") in list(walk(popover)) and "for everybody" in page_text(app)
    app.button(key="w_training_curves_Delete").click().run()
    assert "own-half" not in app.selectbox(key="w_run").options and "The link asks" not in page_text(app)


def test_a_visit_that_has_started_nothing_takes_the_token_of_another_tab(monkeypatch, tmp_path):
    one, two = "1" * 32, "2" * 32

    def visit(**cookies):
        streamlit = types.SimpleNamespace(session_state={}, context=types.SimpleNamespace(cookies=cookies))
        monkeypatch.setattr(ownership, "st", streamlit)

    def after(token):
        ownership.adopt(token)
        return ownership.visitor_token()

    visit()
    assert after("no token") not in ("no token", one)
    assert after(one) == one and not ownership.may_adopt() and after(two) == one
    visit(**{ownership.COOKIE: two})
    assert after(one) == two
    visit()
    ownership.sign(tmp_path)
    assert after(one) != one and ownership.is_visitor(ownership.owner(tmp_path))


def _fail(folder):
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").touch()
    ownership.sign(folder)
    owner = ownership.owner(folder)
    training_jobs._started()[folder.name] = types.SimpleNamespace(
        folder=folder, status="failed", problem="no memory_is left", kill=lambda: None, owner=owner, began=1.0
    )


def _comes_back(app):
    """The visitor who started what `_fail` made opens an app in a new visit, known by the browser's cookie."""
    app.session_state["_visitor_token"] = ownership.visitor_token()
    return app.run()


def test_a_failed_run_is_not_kept_and_told_of_to_its_visitor_alone(open_app, only_mini):
    folder = only_mini.parent / "own-failed"
    _fail(folder)
    other = open_app(page="training_curves", **{"training_curves.run": folder.name})
    assert not other.error and not other.exception and folder.name not in page_text(other)
    assert not folder.exists() and other.selectbox(key="w_run").value == "mini"
    (error,) = _comes_back(other).error
    assert f"The training {folder.name} failed. Nothing of it is kept. no memory" in error.value
    assert "no memory_is left" in error.value.replace("\\", "")


def test_a_failed_run_is_not_listed_on_time_lapse(open_app, only_mini):
    folder = only_mini.parent / "own-failed"
    _fail(folder)
    app = open_app(page="time_lapse", **{"time_lapse.run": folder.name})
    assert not app.error and not app.exception
    assert not folder.exists() and app.selectbox(key="w_run").options == ["mini, shipped"]


def test_a_failed_run_that_has_saved_a_model_is_kept(open_app, only_mini):
    folder = only_mini.parent / "own-failed"
    shutil.copytree(only_mini, folder)
    _fail(folder)
    app = open_app(page="training_curves", **{"training_curves.run": folder.name})
    assert "**Failed.**" in page_text(app) and folder.exists() and not app.error and not app.exception
    (error,) = _comes_back(app).error
    assert f"The training {folder.name} failed. What it saved before is kept. no memory" in error.value


def test_a_run_that_fails_while_it_is_watched_is_listed_no_longer(open_app, only_mini, monkeypatch):
    folder = only_mini.parent / "own-failed"
    _fail(folder)
    discard, calls = training_jobs.discard_failed, []
    # It fails after the page has looked for failed runs.
    monkeypatch.setattr(training_jobs, "discard_failed", lambda: calls.append(1) or (len(calls) > 1 and discard()))
    app = open_app(page="training_curves", **{"training_curves.run": folder.name})
    assert len(calls) == 2 and not app.exception and not app.error
    assert not folder.exists() and app.selectbox(key="w_run").value == "mini"


def test_failed_runs_do_not_count_against_the_limit(only_mini, begun):
    for number in range(state.limits().max_trainings):
        _fail(only_mini.parent / f"own-{number}")
    training_jobs.start("\n\n".join([TEXT * 4] * 10), 10, 1e-3, False)
    assert len(begun) == 1 and not (only_mini.parent / "own-0").exists()


def test_a_series_too_large_is_thinned_out_and_the_lines_say_so(open_app, only_mini, monkeypatch):
    from bert_tf.explain.models.snapshot_series import snapshot_bytes

    actual = read_run(only_mini).snapshots
    monkeypatch.setattr(snapshot_store, "_most", lambda: int(2.5 * snapshot_bytes(actual[:1])))
    app = open_app(page="time_lapse", a="the cat sat on the mat.", mask="a1", **{"time_lapse.run": "mini"})
    assert "2 of 3 snapshots are shown" in page_text(app) and "max_snapshot_megabytes" in page_text(app)
    assert app.select_slider(key="w_time_lapse_at").options == ["0", "20"]
    names = {}
    exec(app.code[0].value, names)
    assert [one.step for one in names["moments"]] == [0, 20]
    monkeypatch.setattr(snapshot_store, "_most", lambda: 10)
    app = open_app(page="time_lapse", a="the cat sat on the mat.", mask="a1", **{"time_lapse.run": "mini"})
    assert "are too large" in page_text(app) and not app.exception and not app.code


def test_a_large_series_is_read_and_asked_beside_the_page(open_app, only_mini, monkeypatch):
    monkeypatch.setattr(snapshot_store, "_SMALL", 0)
    snapshot_store._store.clear()
    app = run_until_done(open_app(page="time_lapse", a="the cat ran.", mask="a1", **{"time_lapse.run": "mini"}))
    snapshot_traces = SnapshotSeries(read_run(only_mini).snapshots).snapshot_traces("the cat ran.", mask=["cat"])
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert (
        list(figure["data"][0]["y"])
        == token_trajectory(snapshot_traces, read_tokenizer_of(only_mini), 2).ranks.tolist()
    )


def test_the_newest_comes_first_also_after_new_year(tmp_path, monkeypatch):
    written, names = time.strftime, ["own-0615-1200-ab12"]  # as they were once, without a year
    for year, month, day in ((2026, 12, 31), (2027, 1, 1)):
        then = (year, month, day, 12, 0, 0, 0, 1, -1)
        monkeypatch.setattr(time, "strftime", lambda form, then=then: written(form, then))
        names += [training_jobs.fresh_name("tag-" if month == 1 else "")]
    for name in names:
        (tmp_path / name).mkdir()
    assert [path.name for path in training_jobs.folders_started_here(tmp_path)] == names[::-1]


def test_series_are_read_one_at_a_time_and_each_once(monkeypatch):
    from bert_tf import errors
    from bert_tf.explain.models import snapshot_series

    read, inside, gate = [], [], threading.Event()

    class Slow:
        nbytes = 1

        def __init__(self, actual, progress):
            inside.append(actual)
            read.append((actual, len(inside)))
            gate.wait(PATIENCE)
            inside.remove(actual)

    monkeypatch.setattr(snapshot_series, "SnapshotSeries", Slow)
    monkeypatch.setattr(snapshot_series, "snapshot_bytes", len)
    snapshot_store._store.clear()
    threads = [threading.Thread(target=snapshot_store._read, args=(key, [key])) for key in "aab"]
    for thread in threads:
        thread.start()
    with pytest.raises(errors.Cancelled):  # one that waits can be stopped
        snapshot_store._read("c", ["c"], lambda done, total: False)
    gate.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(read) == [(["a"], 1), (["b"], 1)]
    snapshot_store._store.clear()


def test_what_was_typed_and_chosen_is_there_again_after_another_page(open_app, only_mini):
    app = open_app(page="training_curves")
    app.text_area(key="w_training_curves_text").set_value("A text.").run()
    app.segmented_control(key="w_training_curves_steps").set_value(1000).run()
    app.file_uploader(key="w_training_curves_upload").upload("mine.txt", b"\xff", "text/plain").run()
    away_and_back(app)
    assert not app.exception and "Read from mine.txt" in page_text(app).replace("\\", "")
    assert app.text_area(key="w_training_curves_text").value == "A text."
    assert app.segmented_control(key="w_training_curves_steps").value == 1000
    app.button(key="w_training_curves_start").click().run()
    assert "not UTF-8 text" in page_text(app).replace("\\", "")
    app.button(key="w_training_curves_forget").click().run()
    assert "Read from" not in page_text(app)


def test_a_file_too_large_to_read_is_not_replaced_by_the_typed_text(open_app, only_mini, monkeypatch):
    from ui.session import training_jobs

    started = []
    monkeypatch.setattr(training_jobs, "start", lambda text, *_: started.append(text) or "mini")
    app = open_app(page="training_curves")
    app.text_area(key="w_training_curves_text").set_value("A typed text.").run()
    app.file_uploader(key="w_training_curves_upload").upload("large.txt", b"a " * 1_000_001, "text/plain").run()
    app.button(key="w_training_curves_start").click().run()
    assert not started and "The file was not read. Remove it to train on the typed text." in page_text(app)
    app.file_uploader(key="w_training_curves_upload").upload("small.txt", b"A small file.", "text/plain").run()
    app.button(key="w_training_curves_start").click().run()
    assert started == ["A small file."]


def read_tokenizer_of(run):
    from bert_tf.tokenizers import read_tokenizer

    return read_tokenizer(run / "snapshots" / "step-0")


def test_the_curves_are_saved(open_app, only_mini, saved):
    offered(run_until_done(open_app(page="training_curves", **{"training_curves.run": "mini"})), saved, ("mini",))
    assert column(saved["mini"], "loss") == [8.5, 8.0, 7.5, 7.0]
    assert saved["mini"]["npz"]["mlm_accuracy"].tolist() == [0.05, 0.1, 0.15, 0.2]
    assert saved["mini"]["figures"].keys() == {"Loss", "Accuracy", "Learning rate"}


def test_the_name_of_a_training_is_not_read_as_a_layer_and_a_head(open_app, only_mini, saved):
    name = "rate-2.5-layer-3"
    shutil.copytree(only_mini, only_mini.with_name(name))
    try:
        run_until_done(open_app(page="training_curves", **{"training_curves.run": name}))
        assert saved[name]["shown"] == name
    finally:
        shutil.rmtree(only_mini.with_name(name))


def test_the_time_lapse_is_saved(open_app, only_mini, saved):
    app = open_app(
        page="time_lapse", a="the cat sat on the mat.", b="she ran.", mask="a1", **{"time_lapse.run": "mini"}
    )
    offered(run_until_done(app), saved, ("time-lapse", "layer-1-head-1"))
    series = SnapshotSeries(read_run(only_mini).snapshots)
    snapshot_traces = series.snapshot_traces("the cat sat on the mat.", "she ran.", mask=["cat"])
    actual = token_trajectory(snapshot_traces, series.tokenizer, 2)
    near(saved["time-lapse"]["npz"]["probability"], actual.probabilities)
    near(column(saved["time-lapse"], "rank"), actual.ranks)
    near(column(saved["time-lapse"], "is_next"), [moment.trace.nsp.is_next for moment in snapshot_traces])
    near(saved["layer-1-head-1"]["npz"]["weights"], snapshot_traces[-1].trace.attentions[:1, 0], 1e-3)
