"""A fine-tuning started from the page."""

import contextlib
import csv
import dataclasses
import errno
import io
import json
import os
import random
import re
import time
import types
from pathlib import Path

import pytest

from tests.app.conftest import use_models_in
from tests.app.page_reading import (
    away_and_back,
    column,
    near,
    offered,
    page_text,
    param,
    walk,
)

GOLDEN_FOLDERS = Path(__file__).parents[1] / "golden" / "family"
PATIENCE = 600  # seconds for a training beside the page: its process may be long in starting


@pytest.fixture(autouse=True)
def own_home(environment, tmp_path, monkeypatch, explorer_home):
    """A models folder of its own: what is trained here is no other test's."""
    import shutil

    from ui.session import finetuning_jobs, task_models, training_jobs

    # Beside other tests they would hardly run.
    monkeypatch.setattr(training_jobs, "lower_priority", lambda process: None)
    home = tmp_path / "home"
    shutil.copytree(explorer_home, home)
    use_models_in(home, monkeypatch)
    for cache in (task_models._settings, finetuning_jobs._started):
        cache.clear()
    yield home
    for training in finetuning_jobs._started().values():
        training.kill()
    for cache in (finetuning_jobs._started, task_models._settings):
        cache.clear()


@pytest.fixture
def in_this_process(monkeypatch):
    """Trainings run here and end before `start` returns: no second process imports TensorFlow."""
    from bert_tf.cli import main
    from ui.session.training_jobs import Training

    def go_on(training):
        arguments = training._command[3:]
        place = arguments.index("--threads")  # a process takes the number of its threads only once
        with open(training.folder / "output.log", "a", encoding="utf-8") as log:
            with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
                code = main([*arguments[:place], *arguments[place + 2 :]])
        training._process = types.SimpleNamespace(poll=lambda: code)
        training._timer = types.SimpleNamespace(cancel=lambda: None)

    monkeypatch.setattr(Training, "go_on", go_on)


def examples(rows=60):
    rng, out = random.Random(0), io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["text", "label"])
    for number in range(rows):
        label = rng.choice(["good", "bad"])
        writer.writerow([f"the film {number} was {label} and long", label])
    return out.getvalue().encode()


def began(app, name, content):
    app.file_uploader(key="w_fine_tune_classify_upload").upload(name, content, "text/csv").run()
    app.selectbox(key="w_fine_tune_model").set_value("tiny-cased").run()
    return app.button(key="w_fine_tune_start").click().run()


def test_a_file_becomes_a_model_that_the_tasks_page_opens(open_app, own_home, saved):
    from ui.session import finetuning_jobs, task_models
    from ui.widgets import formatting

    app = began(open_app(page="fine_tune"), "films.csv", examples())
    assert not app.exception and not app.warning, page_text(app)
    assert not app.expander[0].proto.expanded  # the progress stands below what the file holds
    (name,) = finetuning_jobs.names()
    assert param(app, "fine_tune.run") == name
    wait(name, "done")
    records, rounds = finetuning_jobs.records(name)
    assert records and {"step", "loss"} <= set(records[0]) and "accuracy" in rounds[-1]["dev"]

    assert finetuning_jobs.total_updates(name) == records[-1]["step"] and finetuning_jobs.task_and_metric(name) == (
        "classify",
        "accuracy",
    )
    app.run()
    kept = max(one["dev"]["accuracy"] for one in rounds)
    assert f"accuracy of the saved model on the held-out examples **{kept:.1%}**" in page_text(app)
    assert "which also chose the best epoch" in page_text(app)
    assert not list((own_home / name).glob("task-input.*"))
    offered(app, saved, (f"{name}-learning",))
    near(column(saved[f"{name}-learning"], "loss"), [record["loss"] for record in records])
    app.button(key="w_fine_tune_try").click().run()
    assert not app.exception and not app.error, page_text(app)
    assert formatting.title(name) in app.button_group(key="w_task_model").options
    assert task_models.pairs()[name] == "tiny-cased"

    app = open_app(page="fine_tune")
    app.button(key="w_fine_tune_delete").click().run()
    assert not app.exception and not (own_home / name).exists() and not finetuning_jobs.names()


@pytest.mark.parametrize(
    "task, metric, rounds, says",
    [
        (
            "tag",
            "f1",
            [{"accuracy": 0.9, "f1": 0.25}, {"accuracy": 0.8, "f1": 0.5}, {"accuracy": 0.95, "f1": 0.4}],
            "F1 … **50.0%**",
        ),
        ("answer", "f1", [{"exact_match": 40.0, "f1": 62.5}, {"exact_match": 50.0, "f1": 60.0}], "F1 … **62.5%**"),
        ("classify", "spearman", [{"spearman": -0.5}, {"spearman": -0.125}], "rank correlation … **-0.125**"),
    ],
)
def test_the_score_that_the_model_is_chosen_by_is_told(task, metric, rounds, says, open_app, own_home, saved):
    from ui.session import finetuning_jobs

    run = own_home / "own-one" / "run"
    run.mkdir(parents=True)
    scores = [one[metric] for one in rounds]
    best = [score > max(scores[:place], default=-1) for place, score in enumerate(scores)]
    (run / "rounds.json").write_text(
        json.dumps(
            {"rounds": [{"step": 10 * place, "dev": one, "best": best[place]} for place, one in enumerate(rounds)]}
        )
    )
    (run / "settings.json").write_text(json.dumps({"updates": 30, "task": {"task": task, "metric": metric}}))
    (run / "metrics.jsonl").write_text(json.dumps({"step": 10, "loss": 1.0}))
    finetuning_jobs._started()["own-one"] = types.SimpleNamespace(status="done", kill=lambda: None, owner=None)
    app = open_app(page="fine_tune")
    assert not app.exception, page_text(app)
    assert says.replace("…", "of the saved model on the held-out examples") in page_text(app)
    near(saved["own-one-learning"]["figures"]["Learning"].data[1].y, scores)


@pytest.mark.parametrize("here", [(), ("fine-tuned",)])
def test_without_a_model_that_can_learn_the_page_says_so_and_lists_what_was_trained(
    here, open_app, own_home, monkeypatch
):
    from ui.session import finetuning_jobs, model_store, task_models

    (own_home / "own-one" / "run").mkdir(parents=True)
    finetuning_jobs._started()["own-one"] = types.SimpleNamespace(status="done", kill=lambda: None, owner=None)
    (some, *_) = model_store.installed()
    actual = [dataclasses.replace(some, name=name) for name in here]
    monkeypatch.setattr(model_store, "installed", lambda: actual)
    monkeypatch.setattr(task_models, "names", lambda: dict.fromkeys(here))
    app = open_app(page="fine_tune")
    assert not app.exception and not app.error, page_text(app)
    assert "No installed model can learn this task" in page_text(app) and not app.code
    assert "own-one" in page_text(app).replace("\\", "")


def test_tasks_and_labels_have_the_fields_names(open_app, own_home):
    app = open_app(page="fine_tune")
    names = [[option.content for option in group.proto.options] for group in app.button_group]
    assert [
        "Text classification",
        "Token classification",
        "Question answering",
        "Multiple choice",
        "Sentence similarity",
    ] in names
    assert ["Single label", "Multi-label", "Regression"] in names


def test_only_what_can_learn_a_task_is_offered_for_it(open_app, own_home, monkeypatch):
    from ui.session import finetuning_jobs

    monkeypatch.setattr(finetuning_jobs, "can_learn", lambda task, config: task != "choose")
    app = open_app(page="fine_tune")
    app.button_group(key="w_fine_tune_task").set_value("choose").run()
    assert not app.error and "No installed model can learn this task" in page_text(app)
    app.button_group(key="w_fine_tune_task").set_value("tag").run()
    assert "tiny-cased" in app.selectbox(key="w_fine_tune_model").options


@pytest.mark.usefixtures("few_updates")
def test_a_model_of_128_places_learns_to_answer(own_home, in_this_process):
    from bert_tf import checkpoints
    from bert_tf.finetuning.task_settings import read_settings
    from tests.conftest import make_bert
    from ui.session import finetuning_jobs, model_store, state

    short = make_bert(name="short")
    checkpoints.save(own_home / "short", short.config, short.tokenizer, short.model)
    limits = own_home / "explorer.toml"
    limits.write_text(limits.read_text().replace('"tiny-uncased", ', '"tiny-uncased", "short", '))
    for cache in (state.limits, model_store.catalogue):
        cache.clear()
    passages = [
        {
            "context": f"the {one} sat on the mat",
            "qas": [{"id": one, "question": "she sat on?", "answers": [{"text": one, "answer_start": 4}]}],
        }
        for one in ("cat", "dog", "bunny", "house")
    ]
    content = json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": passages}]}).encode()
    name = finetuning_jobs.start("answer", "q.json", content, "short", 1, True)
    wait(name, "done")
    assert read_settings(own_home / name).max_length == 128
    marked_options = finetuning_jobs.options("answer", "tiny-cased", 1, True)
    assert marked_options[marked_options.index("--length") + 1] == 256


def wait(name, status):
    from ui.session import finetuning_jobs

    training = finetuning_jobs.started(name)
    deadline = time.monotonic() + PATIENCE
    while training.status in ("running", "ending") and time.monotonic() < deadline:
        time.sleep(0.2)
    assert training.status == status, training.problem


def test_a_second_press_while_the_file_is_read_starts_one_training(open_app, own_home, monkeypatch):
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from ui.session import finetuning_jobs

    app = open_app(page="fine_tune")
    app.file_uploader(key="w_fine_tune_classify_upload").upload("films.csv", examples(), "text/csv").run()
    app.selectbox(key="w_fine_tune_model").set_value("tiny-cased").run()
    pressed = app.button(key="w_fine_tune_start").click()
    second_press = [RerunData(widget_states=app._tree.get_widget_states())]
    examine = finetuning_jobs.examine

    def read(*arguments):
        if second_press:
            get_script_run_ctx().script_requests.request_rerun(second_press.pop())
        return examine(*arguments)

    monkeypatch.setattr(finetuning_jobs, "examine", read)
    pressed.run()
    (folder,) = own_home.glob("own-*")
    assert finetuning_jobs.names() == [folder.name] and not app.exception and not app.warning
    assert (folder / "owner.txt").exists() and param(app, "fine_tune.run") == folder.name


def test_a_stopped_training_leaves_its_best_model(open_app, own_home):
    from ui.session import finetuning_jobs

    name = finetuning_jobs.start("classify", "films.csv", examples(4000), "tiny-cased", 10, True)
    deadline = time.monotonic() + PATIENCE
    while not finetuning_jobs.records(name)[1] and time.monotonic() < deadline:
        time.sleep(0.05)
    app = open_app(page="fine_tune")
    bars, curves = [], []
    while len(set(bars)) < 2 and time.monotonic() < deadline:
        bars.append(app.get("progress")[0].proto.text)
        curves.append(len(json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]["x"]))
        app.run()
    total = finetuning_jobs.total_updates(name)
    assert all(re.fullmatch(rf"Update [\d,]+ of {total:,}", bar) for bar in bars), bars
    assert curves[-1] > curves[0] and finetuning_jobs.started(name).status == "running", (bars, curves)
    app.button(key="w_fine_tune_stop").click().run()
    assert not app.exception, page_text(app)
    wait(name, "stopped")
    app.run()
    assert "The best model of the evaluations until then was saved." in page_text(app)
    assert len(finetuning_jobs.records(name)[1]) < 10 and app.button(key="w_fine_tune_try")


@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize("answers, metric_name", [("Regression", "regression"), ("Multi-label", "multi_label")])
def test_numbers_and_several_labels_are_learnt(answers, metric_name, own_home, in_this_process):
    from bert_tf.finetuning.task_settings import read_settings
    from ui.session import finetuning_jobs

    labels = {"regression": ("1.5", "-2"), "multi_label": ("long|good", "long")}[metric_name]
    pairs = list(zip(("good", "bad"), labels)) * 10
    rows = "".join(f"the film {number} was {word},{label}\n" for number, (word, label) in enumerate(pairs))
    name = finetuning_jobs.start(
        "classify", "films.csv", f"text,label\n{rows}".encode(), "tiny-cased", 1, True, answers
    )
    wait(name, "done")
    assert getattr(read_settings(own_home / name), metric_name)


@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize(
    "task, file_name, content",
    [
        ("tag", "w.conll", "".join(f"the DET\ncat{number} NOUN\nran VERB\n\n" for number in range(20))),
        (
            "choose",
            "c.jsonl",
            "".join(
                json.dumps({"context": f"the cat {number}", "choices": choices, "label": choices.index("sat")}) + "\n"
                for number in range(10)
                for choices in (["sat", "it was"], ["it was", "sat"])
            ),
        ),
    ],
)
def test_words_and_endings_are_learnt(task, file_name, content, own_home, in_this_process):
    from bert_tf.finetuning.task_settings import read_settings
    from ui.session import finetuning_jobs, model_store, task_models

    name = finetuning_jobs.start(task, file_name, content.encode(), "tiny-cased", 1, True)
    wait(name, "done")
    settings = read_settings(own_home / name)
    assert settings.task == task and (task == "choose" or set(settings.labels) == {"DET", "NOUN", "VERB"})
    records, rounds = finetuning_jobs.records(name)
    assert records and finetuning_jobs.task_and_metric(name)[0] == task and rounds
    model_store.catalogue.clear()
    task_models._settings.clear()
    assert name in task_models.names()


def test_what_an_earlier_server_left_is_shown_and_deleted(open_app, own_home):
    from ui.session import finetuning_jobs

    cut, done, unmeasured = "own-tag-0101-2359-b", "own-classify-0102-0001-a", "own-tag-0101-2358-c"
    for name in (cut, done, unmeasured):
        run = own_home / name / "run"
        run.mkdir(parents=True)
        (own_home / name / "task-input.csv").write_text("text,label")
        (run / "settings.json").write_text(
            json.dumps({"updates": 30, "task": {"task": "classify", "metric": "accuracy"}})
        )
        last = {"step": 10 if name == cut else 30, "loss": 1.0, "seconds_per_step": 0.1, "time": 1.0}
        (run / "metrics.jsonl").write_text(json.dumps(last))
        rounds = [{"step": 10, "epoch": 1, "dev": {}, "best": True, "last": False}]
        if name == done:
            rounds.append({**rounds[0], "step": 30, "last": True})
        (run / "rounds.json").write_text(json.dumps({"rounds": rounds}))
        os.utime(run / "settings.json", (1, 1))
    assert finetuning_jobs.names() == [done, cut, unmeasured]
    statuses = [finetuning_jobs.started(name).status for name in finetuning_jobs.names()]
    assert statuses == ["done", "stopped", "stopped"]
    finetuning_jobs.remove(unmeasured)
    assert not list(own_home.glob("own-*/task-input.*"))

    app = open_app(page="fine_tune")
    assert app.selectbox(key="w_fine_tune_run").value == done
    app.selectbox(key="w_fine_tune_run").set_value(cut).run()
    assert param(app, "fine_tune.run") == cut and "**Stopped.**" in page_text(app)
    app.button(key="w_fine_tune_delete").click().run()
    assert not app.exception and not (own_home / cut).exists() and (own_home / done).exists()
    assert finetuning_jobs.names() == [done] and "**Done.**" in page_text(app)
    assert not app.warning  # it was deleted here
    gone = open_app(page="fine_tune", **{"fine_tune.run": "own-gone"})
    says = f"The link asks for the training “own-gone”, which is not here. {done} is used."
    assert says in [one.value.replace("\\", "") for one in gone.warning]


def test_what_another_server_trains_is_left_alone(own_home):
    from ui.session import finetuning_jobs

    run = own_home / "own-live" / "run"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text(json.dumps({"step": 10, "loss": 1.0, "time": time.time()}))
    assert finetuning_jobs.names() == [] and finetuning_jobs.started("own-live") is None
    assert finetuning_jobs.started("tiny-cased") is None  # no model of a page's


def test_the_curve_has_each_step_once_and_no_line_that_is_being_written(own_home):
    from ui.session import finetuning_jobs

    run = own_home / "mine" / "run"
    run.mkdir(parents=True)
    assert finetuning_jobs.records("mine") == ((), ())
    steps = [10, 20, 30, 20, 30]  # continued from step 10
    (run / "metrics.jsonl").write_text("".join(json.dumps({"step": step}) + "\n" for step in steps) + '{"step": 4')
    assert [record["step"] for record in finetuning_jobs.records("mine")[0]] == [10, 20, 30]


def test_no_more_models_are_kept_than_the_limits_say(own_home):
    from ui.session import finetuning_jobs, state

    for number in range(state.limits().max_models):
        (own_home / f"own-{number}").mkdir()
    with pytest.raises(ValueError, match="There are 8 models from visitors' files here"):
        finetuning_jobs.start("classify", "films.csv", examples(), "tiny-cased", 1, True)


@pytest.mark.parametrize("epochs", [0, 11])
def test_no_more_epochs_are_done_than_the_limits_say(epochs, own_home):
    from ui.session import finetuning_jobs

    with pytest.raises(ValueError, match=f"The number of epochs must be 1 to 10 here, not {epochs}"):
        finetuning_jobs.start("classify", "films.csv", examples(), "tiny-cased", epochs, True)
    assert not list(own_home.glob("own-*"))


def test_a_second_training_waits_for_the_first(own_home):
    from ui.session import finetuning_jobs

    first = finetuning_jobs.start("classify", "films.csv", examples(4000), "tiny-cased", 10, True)
    with pytest.raises(ValueError, match="Another training is running here; stop it, or wait until it ends"):
        finetuning_jobs.start("classify", "films.csv", examples(), "tiny-cased", 1, True)
    assert [path.name for path in own_home.glob("own-*")] == [first]
    finetuning_jobs.started(first).kill()
    finetuning_jobs.check(1)


def test_a_training_is_given_the_minutes_of_the_limits(own_home, monkeypatch):
    from ui.session import finetuning_jobs, state

    calls = []
    monkeypatch.setattr(finetuning_jobs, "Training", lambda folder, arguments, seconds, **_: calls.append(seconds))
    limits = own_home / "explorer.toml"
    limits.write_text(limits.read_text() + "\n[training]\nmax_minutes = 7\n")
    state.limits.clear()
    finetuning_jobs.start("classify", "films.csv", examples(), "tiny-cased", 1, True)
    finetuning_jobs._started().clear()
    assert calls == [7 * 60]


def test_where_one_epoch_is_allowed_none_is_chosen(open_app, own_home):
    from ui.session import state

    limits = own_home / "explorer.toml"
    limits.write_text(limits.read_text() + "\n[training]\nmax_epochs = 1\n")
    state.limits.clear()
    app = open_app(page="fine_tune")
    assert not app.exception and not [one for one in app.slider if one.key == "w_fine_tune_epochs"]


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("films.csv", b" \n", "films.csv is empty"),
        ("films.csv", b"text,label\n", "films.csv holds no example"),
        ("films.csv", b"text,label\na,good\nb,good\nc,good\nd,good\ne,good\n", "films.csv holds only the label 'good'"),
        ("films.csv", b"text,label\na,good\nb,bad\n", "films.csv has too few different inputs"),
        ("films.csv", b"a,b\n1,2\n", "films.csv: no column with the text was found"),
        ("films.csv", b'text,label\na,good\n"b,bad\n', "films.csv line 3: not CSV"),
        ("films.exe", b"x", "films.exe ends in .exe; this task reads .csv, .tsv, .jsonl"),
        ("films.csv", b"x" * 600_000, "600,000 bytes; at most 500,000"),
    ],
)
def test_files_that_cannot_be_learnt_from_are_refused_with_a_sentence(name, content, says, own_home):
    from ui.session import finetuning_jobs

    with pytest.raises(ValueError, match=says.replace(".", r"\.").replace(";", ".")) as raised:
        finetuning_jobs.start("classify", name, content, "tiny-cased", 1, True)
    message = str(raised.value)
    assert not list(own_home.glob("own-*")) and "task-input" not in message and "/" not in message
    assert "--" not in message


@pytest.mark.parametrize(
    "task, name, content, says",
    [
        (
            "classify",
            "x.jsonl",
            '{"text": "a", "label": "\\ud800"}',
            "x.jsonl line 1: it holds half of a surrogate pair",
        ),
        ("tag", "x.jsonl", '{"words": ["\\ud800"], "labels": ["O"]}', "x.jsonl, line 1: it holds half of a surrogate"),
        ("choose", "x.jsonl", '\n{"context": "\\ud800"}', "x.jsonl line 2: it holds half of a surrogate pair"),
        ("similarity", "x.jsonl", '{"text_a": "a", "text_b": "\\ud800"}', "line 1: it holds half of a surrogate pair"),
        (
            "answer",
            "x.json",
            '{"data": [{"paragraphs": [{"context": "a \\ud800", "qas": []}]}]}',
            "x.json, article 1, paragraph 1: 'context' is broken at character 2",
        ),
        ("answer", "x.json", "[" * 100_000 + "]" * 100_000, "x.json is not JSON"),
    ],
)
def test_what_is_no_text_is_refused_before_the_training(task, name, content, says, own_home):
    from ui.session import finetuning_jobs

    with pytest.raises(ValueError, match=re.escape(says)):
        finetuning_jobs.examine(task, name, content.encode(), "tiny-cased")


def test_a_table_with_semicolons_is_learnt_from(own_home):
    from ui.session import finetuning_jobs

    rows = "".join(f"good, {number} times;yes\nbad, {number} times;no\n" for number in range(10))
    summary = finetuning_jobs.examine("classify", "films.csv", f"text;label\n{rows}".encode(), "tiny-cased")
    assert summary.labels == {"yes": 10, "no": 10} and (summary.examples, summary.held_out) == (20, 4)


def test_the_page_shows_rows_and_labels_before_it_trains(open_app, own_home):
    from ui.session import finetuning_jobs

    app = open_app(page="fine_tune")
    app.file_uploader(key="w_fine_tune_classify_upload").upload("films.csv", examples(), "text/csv").run()
    rows = list(csv.DictReader(io.StringIO(examples().decode())))
    counts = {label: sum(row["label"] == label for row in rows) for label in ("good", "bad")}
    assert not app.exception and not app.warning, page_text(app)
    assert "**60 examples**: 48 to learn from, 12 held out." in page_text(app)
    assert all(f"{label} {number}" in page_text(app) for label, number in counts.items())
    table = app.dataframe[0].value
    assert list(table.columns) == ["text", "label"] and len(table) == 5 and set(table["label"]) <= set(counts)
    assert not finetuning_jobs.names()


def test_what_was_typed_and_chosen_is_there_again_after_another_page(open_app, own_home):
    app = open_app(page="fine_tune")
    app.file_uploader(key="w_fine_tune_classify_upload").upload("films.csv", examples(), "text/csv").run()
    app.button_group(key="w_fine_tune_labels").set_value("Multi-label").run()
    app.selectbox(key="w_fine_tune_model").set_value("tiny-cased").run()
    app.slider(key="w_fine_tune_epochs").set_value(2).run()
    app.text_input(key="w_fine_tune_name").set_value("films").run()
    away_and_back(app)
    assert not app.exception and "60 examples" in page_text(app)
    assert app.button_group(key="w_fine_tune_labels").value == "Multi-label"
    assert app.selectbox(key="w_fine_tune_model").value == "tiny-cased"
    assert app.slider(key="w_fine_tune_epochs").value == 2
    assert app.text_input(key="w_fine_tune_name").value == "films"
    app.button_group(key="w_fine_tune_task").set_value("tag").run()
    away_and_back(app)
    assert app.button_group(key="w_fine_tune_task").value == "tag" and "films.csv" not in page_text(app)


@pytest.mark.parametrize(
    ("page", "keys"),
    [
        ("fine_tune", ("w_fine_tune_task", "w_fine_tune_labels")),
        ("training_curves", ("w_training_curves_begin", "w_training_curves_steps")),
    ],
)
def test_a_second_press_takes_no_choice_away(page, keys, open_app, own_home):
    app = open_app(page=page)
    for key in keys:
        assert app.button_group(key=key).proto.required


def test_a_bad_file_is_told_of_as_soon_as_it_is_chosen(open_app, own_home):
    app = began(open_app(page="fine_tune"), "films.csv", b"text,label\n")
    (warning,) = app.warning
    assert warning.value.replace("\\", "") == "films.csv holds no example; it needs a row for each."
    assert not list(own_home.glob("own-*"))


def test_a_start_that_the_disk_refuses_names_no_path(open_app, own_home, monkeypatch):
    from ui.session import finetuning_jobs

    def refuse(folder):
        raise OSError(errno.EROFS, "Read-only file system", str(folder))

    monkeypatch.setattr(finetuning_jobs, "new_folder", refuse)
    app = began(open_app(page="fine_tune"), "films.csv", examples())
    (warning,) = app.warning
    message = warning.value.replace("\\", "")
    assert "Read-only file system" in message and str(own_home) not in message and not app.error
    assert app.button(key="w_fine_tune_start")


def test_a_model_gets_the_name_of_its_visitor(own_home):
    from ui.session import finetuning_jobs

    name = finetuning_jobs.start(
        "classify", "films.csv", examples(), "tiny-cased", 1, True, None, "Kritiken: Köln/../x"
    )
    assert re.fullmatch(r"own-kritiken-koln-x-\d{6}-\d{4}-[0-9a-f]{4}", name) and (own_home / name).is_dir()
    finetuning_jobs.started(name).kill()
    with pytest.raises(ValueError, match="needs Latin letters or digits"):
        finetuning_jobs.start("classify", "films.csv", examples(), "tiny-cased", 1, True, None, "映画")


def test_a_model_is_deleted_by_a_second_press(open_app, own_home):
    from ui.session import finetuning_jobs

    (own_home / "own-one" / "run").mkdir(parents=True)
    finetuning_jobs._started()["own-one"] = types.SimpleNamespace(status="done", kill=lambda: None, owner=None)
    app = open_app(page="fine_tune")
    button = app.button(key="w_fine_tune_delete")
    popover = next(block for block in walk(app._tree.root) if getattr(block, "type", "") == "popover")
    assert button in list(walk(popover)) and "for everybody" in page_text(app)


def test_only_the_visitor_who_started_a_training_can_delete_it(open_app, own_home, monkeypatch):
    from ui import ownership
    from ui.session import finetuning_jobs, state

    limits_file = own_home / "explorer.toml"
    limits_file.write_text(limits_file.read_text() + "[training]\ndelete_any = false\n")
    state.limits.clear()
    app = began(open_app(page="fine_tune"), "films.csv", examples())
    (name,) = finetuning_jobs.names()
    assert "only your browser can stop and delete it" in page_text(app)
    assert "w_fine_tune_stop" in [button.key for button in app.button]
    finetuning_jobs.started(name).kill()

    def kept_buttons(token):
        other = open_app(page="fine_tune")
        if token:
            other.session_state["_visitor_token"] = token
            other.run()
        return [button.key for button in other.button if button.key in ("w_fine_tune_stop", "w_fine_tune_delete")]

    monkeypatch.setattr(finetuning_jobs.started(name), "_left_as", "done")
    monkeypatch.setattr(finetuning_jobs.started(name), "_process", None)
    assert not kept_buttons("") and "w_fine_tune_delete" in kept_buttons(app.session_state["_visitor_token"])
    # The file holds the hash alone.
    owner = (own_home / name / "owner.txt").read_text()
    assert app.session_state["_visitor_token"] not in owner
    assert "only the owner of this server" in ownership.others_stay()


def test_a_failed_training_is_not_kept_and_told_of_to_its_visitor_alone(open_app, own_home, monkeypatch):
    from ui.session import finetuning_jobs

    monkeypatch.setattr(finetuning_jobs, "examine", lambda task, *_: finetuning_jobs.FileSummary(1, 0, {}, []))
    app = began(open_app(page="fine_tune"), "films.csv", b"a,b\n1,2\n")
    name = param(app, "fine_tune.run")  # the list of the trainings may lack it already, as it fails at once
    training = finetuning_jobs.started(name)
    deadline = time.monotonic() + PATIENCE
    while training.status == "running" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert training.status == "failed"
    assert training.problem.startswith("films.csv: no column")
    other = open_app(page="fine_tune")
    assert not other.error and not other.exception and name not in page_text(other)
    assert not (own_home / name).exists() and not finetuning_jobs.names()
    app.run()
    assert [f"The training {name} failed. Nothing of it is kept. " in one.value for one in app.error] == [True]
    assert "films.csv: no column" in app.error[0].value.replace("\\", "")
    other.session_state["_visitor_token"] = app.session_state["_visitor_token"]  # the visitor has reloaded the page
    assert [one.value for one in other.run().error] == [app.error[0].value]
    # The status of a training whose files are deleted is known still.
    assert training.status == "failed" and training.problem.startswith("films.csv: no column")


def test_a_training_that_failed_and_was_deleted_names_no_path(tmp_path):
    from ui.session.training_jobs import Training

    training = Training(tmp_path, ["no-such-command"], 60)
    training._process.wait()
    (tmp_path / "output.log").unlink()
    assert training.status == "failed" and training.problem == "The training ended without an error message."


def test_where_training_is_switched_off_the_page_says_so(open_app, own_home):
    from ui.session import state

    text = (own_home / "explorer.toml").read_text() + "\n[training]\ntrain = false\n"
    (own_home / "explorer.toml").write_text(text)
    state.limits.clear()
    app = open_app(page="fine_tune")
    assert "switched off" in page_text(app) and not app.exception


@pytest.fixture
def offer(own_home):
    """A function that puts a model folder under a name into the home and among those that are offered."""
    import shutil

    from bert_tf.checkpoints.model_checksums import write_model_checksums
    from ui.session import model_store, state

    def offered(name, folder, **settings):
        shutil.copytree(folder, own_home / name)
        path = own_home / name / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
        write_model_checksums(path.parent)
        limits = own_home / "explorer.toml"
        limits.write_text(limits.read_text().replace("offered = [", f'offered = ["{name}", '))
        state.limits.clear()
        model_store.catalogue.clear()

    return offered


@pytest.mark.parametrize("groups, kept", [(2, 2), (1, 0)])
def test_the_lowest_layers_are_kept_only_where_the_highest_do_not_share_their_weights(groups, kept, open_app, offer):
    from ui.session import finetuning_jobs

    offer("albert", GOLDEN_FOLDERS / "albert", num_hidden_groups=groups)  # four layers
    chosen = finetuning_jobs.options("classify", "albert", 1, True)
    assert chosen[chosen.index("--freeze-layers") + 1] == kept if kept else "--freeze-layers" not in chosen
    app = open_app(page="fine_tune")
    app.selectbox(key="w_fine_tune_model").set_value("albert").run()
    assert not app.exception, page_text(app)
    switches = [one.label for one in app.toggle if one.key == "w_fine_tune_top"]
    assert switches == (["Train only the two highest layers"] if kept else [])
    assert ("The whole model is trained: its layers share one set of weights." in page_text(app)) == (not kept)
    assert ("--freeze-layers" in app.code[0].value) == bool(kept)


@pytest.mark.usefixtures("few_updates")
def test_a_reader_from_left_to_right_is_not_judged_by_its_first_token(open_app, offer, tmp_path, in_this_process):
    from bert_tf import checkpoints
    from tests.layers.test_causal import LEFT, make_reader
    from ui.session import finetuning_jobs
    from ui.widgets.formatting import title

    reader = make_reader(LEFT)
    offer("reader", checkpoints.save(tmp_path / "reader", reader.config, reader.tokenizer, reader.model))
    app = open_app(page="fine_tune")
    for task, there in (("choose", False), ("tag", True), ("answer", True), ("classify", True)):
        app.button_group(key="w_fine_tune_task").set_value(task).run()
        assert not app.exception, page_text(app)
        assert (title("reader") in app.selectbox(key="w_fine_tune_model").options) == there, task
    app.selectbox(key="w_fine_tune_model").set_value("reader").run()
    assert "--pooling mean" in app.code[0].value
    rows = "".join(f"film {number} was {label},{label}\n" for number in range(10) for label in ("good", "bad"))
    name = finetuning_jobs.start("classify", "films.csv", f"text,label\n{rows}".encode(), "reader", 1, True)
    wait(name, "done")
