"""Task predictions and Fine-tuning changes, driven without a browser."""

import base64
import json
from types import SimpleNamespace

import numpy as np
import pytest

import bert_tf
from bert_tf.config import BertConfig
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.plots.numbers import percent
from tests.app.conftest import use_models_in
from tests.app.page_reading import (
    column,
    component,
    components,
    near,
    offered,
    page_text,
    param,
    use,
    walk,
)
from tests.app.page_reading import run_until_done as finished
from tests.app.random_task_models import LIMITS
from tests.app.test_representation_pages import array
from ui.samples.examples import example
from ui.session import task_models
from ui.shell.limits import ROOT

ANSWERED = task_models.EXAMPLES["answer", True]
pytestmark = pytest.mark.usefixtures("with_tasks")


def no_trouble(app):
    assert not app.exception and not app.error, page_text(app)


def loaded(name, task_home):
    return bert_tf.load(task_home / name)


def run_until_done(app):
    """The page once the words that mattered are marked."""
    return finished(app, lambda app: component(app, "marks") is not None)


def tables(app):
    return [frame.value for frame in app.dataframe]


def test_a_text_comes_back_after_the_example_that_the_page_opened_by_itself(open_app):
    app = open_app(page="task_predictions", **{"task_predictions.model": "classes"})
    opened = app.text_area(key="w_text_a").value
    app.text_area(key="w_text_a").set_value("the cat sat").run()
    use(app, "undo")
    assert app.text_area(key="w_text_a").value == opened
    use(app, "redo")
    assert app.text_area(key="w_text_a").value == "the cat sat"


def test_classes_are_those_the_library_gives_with_the_words_that_mattered(open_app, task_home):
    app = open_app(page="task_predictions", a="the cat sat", **{"task_predictions.model": "classes"})
    no_trouble(app)
    (output,) = loaded("classes", task_home).task.predict(["the cat sat"])
    drawn = component(run_until_done(app), "marks")
    assert [part["text"] for part in drawn["a"] if "tip" in part] == ["the", "cat", "sat"]
    assert f"“{output['label']}”" in page_text(app)


def test_the_fine_tuned_model_of_the_sidebar_is_the_one_of_the_page(open_app, task_home):
    app = open_app(page="task_predictions", model="tags", a="the cat sat")
    no_trouble(app)
    assert "tags · fine-tuned to mark words ·" in page_text(app)


def test_a_task_of_two_texts_completes_an_example_of_one_text_but_no_text_of_the_visitor(open_app):
    (_, praise, _), (_, question, passage) = task_models.EXAMPLES["classify", False][0], ANSWERED[0]
    app = open_app(page="task_predictions", a=praise, **{"task_predictions.model": "classes"})
    no_trouble(app.segmented_control(key="w_task_model").set_value("answers").run())
    assert (param(app, "a"), param(app, "b")) == (question, passage)
    app = open_app(page="task_predictions", a="the cat sat", **{"task_predictions.model": "answers"})
    assert param(app, "a") == "the cat sat" and "Passage is empty" in page_text(app)


@pytest.mark.parametrize("label", ["Bunny after history", "Shanghai"])
def test_a_picked_example_of_another_page_becomes_the_task_s_own(open_app, label):
    picked, (_, question, passage) = example(label), ANSWERED[0]
    link = {"a": picked.a, "b": picked.b, "mask": ",".join(str(mask) for mask in picked.masks)}
    app = open_app(page="predict", **link)
    assert app.button_group(key="w_example").value == label
    for model, texts in (("answers", (question, passage)), ("tags", task_models.EXAMPLES["tag", False][0][1:])):
        app = open_app(page="task_predictions", **link, **{"task_predictions.model": model})
        no_trouble(app)
        assert (param(app, "a"), param(app, "b") or "") == texts and not param(app, "mask")


@pytest.mark.parametrize("own", [{"b": "They sing."}, {"a": "They sing."}])
def test_one_text_of_the_visitor_beside_an_example_stays(open_app, own):
    picked = example("Bunny after history")
    texts = {"a": picked.a, "b": picked.b} | own
    app = open_app(page="task_predictions", **texts, **{"task_predictions.model": "answers"})
    no_trouble(app)
    assert {side: param(app, side) for side in "ab"} == texts


def test_a_pair_task_asks_for_a_second_text(open_app):
    app = open_app(page="task_predictions", a="the cat", **{"task_predictions.model": "pairs"})
    no_trouble(app)
    assert "Second text is empty" in page_text(app)
    app.text_area(key="w_text_b").set_value("a dog").run()
    no_trouble(app)
    assert component(run_until_done(app), "marks")["b"]


def test_a_regression_shows_its_number(open_app, task_home):
    app = open_app(page="task_predictions", a="the cat sat", **{"task_predictions.model": "score"})
    no_trouble(app)
    (output,) = loaded("score", task_home).task.predict(["the cat sat"])
    assert app.metric[0].value == f"{output['value']:.2f}"


@pytest.mark.parametrize(
    "model, b",
    [
        ("classes", ""),
        ("pairs", "a dog"),
        ("score", ""),
        ("tags", ""),
        ("answers", "the cat sat on the mat."),
        ("endings", "sat on the mat\nran in the park"),
        ("either", ""),
        ("either", "a dog"),
    ],
)
def test_the_lines_of_a_task_say_what_the_page_says(open_app, task_home, capsys, model, b):
    from ui.session import task_models

    app = open_app(page="task_predictions", a="the cat sat", b=b, **{"task_predictions.model": model})
    names = {}
    exec(app.code[0].value, names)
    bert = loaded(model, task_home)
    (output,) = bert.task.predict([task_models.record(bert.task.settings, "the cat sat", b)])
    assert capsys.readouterr().out.startswith(f"{output}\n")
    assert ("result" in names) == (bert.task.settings.task == "classify")
    if "result" in names:
        job_result = run_until_done(app).session_state["_jobs"]["task words"].result
        scores = [one.score for one in job_result.words]
        assert [one.score for one in names["result"].words] == pytest.approx(scores, abs=1e-4)


def test_the_lines_of_before_and_after_give_the_map_of_the_page(open_app, capsys):
    app = open_app(
        page="fine_tuning_changes", a="the cat sat", b="it ran", mask="a1", **{"fine_tuning_changes.model": "tags"}
    )
    no_trouble(app)
    names = {}
    exec(app.code[0].value, names)
    drawn = figure(app)["data"][0]["z"]
    heat = np.frombuffer(base64.b64decode(drawn["bdata"]), drawn["dtype"]).reshape(2, 4)
    page_text = capsys.readouterr().out
    assert page_text.startswith(str(heat.round(3)))
    (output,) = names["after"].task.predict([{"text": "the cat sat"}])
    assert names["answer"] == output
    table = tables(app)[0]  # of the head that is open
    for token, before, after in zip(table["token"], table["before"], table["after"]):
        looks = f"{token} {before.split(' (')[0]} ", f" {after.split(' (')[0]} "
        assert any(line.startswith(looks[0]) and looks[1] in line for line in page_text.splitlines())


def test_the_lines_of_two_classifiers_say_both_answers_and_what_their_layers_say(open_app, task_home, capsys):
    from bert_tf.explain import class_lens

    link = {"with": "either", "side_by_side.look": "layers"}
    app = finished(open_app(page="side_by_side", a="the cat sat", model="classes", **link))
    names = {}
    exec(app.code[0].value, names)
    page_text = capsys.readouterr().out
    for name in ("classes", "either"):
        bert = loaded(name, task_home)
        assert str(bert.task.predict([{"text_a": "the cat sat"}])) in page_text
        values = class_lens(bert, bert.trace("the cat sat")).values
        assert str(values.round(3)) in page_text
    assert sum(str(card["predictions"][0]["text"]) in page_text for card in component(app, "bars")["cards"])


@pytest.mark.parametrize(
    "other, says", [("pairs", "It judges pairs: type a text B."), ("score", "One side predicts a score")]
)
def test_the_lines_leave_out_the_classes_of_layers_that_are_not_drawn(open_app, other, says):
    app = beside(open_app, "classes", other, **{"side_by_side.look": "layers"})
    assert says in page_text(app) and "class_lens" not in app.code[0].value
    exec(app.code[0].value, {})


def test_the_lines_of_the_architecture_score_no_single_ending(open_app):
    app = finished(
        open_app(page="architecture", a="the cat", b="sat", model="endings", **{"architecture.open": "task"})
    )
    names = {}
    exec(app.code[0].value, names)
    assert "Type two or more endings" in page_text(app) and "result" not in names


@pytest.mark.parametrize("model, b", [("classes", ""), ("endings", "sat on the mat\nran in the park")])
def test_the_lines_of_the_architecture_go_through_the_task_s_head(open_app, task_home, model, b):
    from bert_tf.explain.models.architecture import choice_scores, task_head_activations

    app = finished(open_app(page="architecture", a="the cat", b=b, model=model, **{"architecture.open": "task"}))
    names, bert = {}, loaded(model, task_home)
    exec(app.code[0].value, names)
    if b:
        np.testing.assert_allclose(names["result"], choice_scores(bert, "the cat", b.splitlines()), atol=1e-5)
    else:
        logits = task_head_activations(bert, bert.trace("the cat"))["logits"]
        np.testing.assert_allclose(names["result"]["logits"], logits, atol=1e-5)


def figure(app, index=0):
    return json.loads(app.get("plotly_chart")[index].proto.spec)


def test_a_class_is_followed_layer_by_layer(open_app, task_home):
    from bert_tf.explain import class_lens

    app = finished(open_app(page="logit_lens", a="the cat sat", model="classes"))
    bert = loaded("classes", task_home)
    lens = class_lens(bert, bert.trace("the cat sat"))
    drawn = figure(app)["data"]
    assert [one["name"] for one in drawn] == ["bad", "good"]
    assert np.allclose([one["y"] for one in drawn], lens.values.T, atol=1e-5)
    assert figure(finished(open_app(page="logit_lens", a="the cat sat", model="score")))["data"][0]["name"] == "value"
    for method, output in (("deeplift", "The gain of the value"), ("relevance", "The value passed back")):
        app = finished(open_app(page="saliency", a="the cat sat", model="score", **{"saliency.method": method}))
        assert output in page_text(app) and "log-" not in page_text(app)
    assert "The class after each layer" not in page_text(open_app(page="logit_lens", a="the cat sat", model="tags"))


def test_parts_are_switched_off_under_a_class(open_app, task_home):
    from bert_tf.explain import Ablation, ablate, every_head, sweep

    link = {"ablation.off": "1-2", "ablation.colour": "effect"}
    app = finished(open_app(page="ablation", a="the cat sat", model="classes", **link))
    bert = loaded("classes", task_home)
    trace = bert.trace("the cat sat")
    effect = ablate(bert, trace, Ablation(heads=((0, 1),)))
    on_page = {one["text"]: (one["was"], one["p"]) for one in component(app, "bars")["cards"][0]["predictions"]}
    for label, share in effect.classes_after.items():
        assert on_page[label] == pytest.approx((effect.classes_before[label], share), abs=1e-5)
    lost = -sweep(bert, trace, every_head(bert.config)).class_changes
    assert sorted(np.abs(figure(app)["data"][0]["x"])) == pytest.approx(sorted(np.abs(lost)), abs=1e-5)


def test_parts_are_switched_off_under_a_number(open_app):
    app = finished(open_app(page="ablation", a="the cat sat", model="score", **{"ablation.off": "1-x"}))
    assert app.metric[0].label == "Score" and float(app.metric[0].delta) != 0


def test_marked_words_are_cut_from_the_visitors_own_text(open_app, task_home):
    text = "the cat ran in London  and sat in <b>Paris</b>"
    app = open_app(page="task_predictions", a=text, **{"task_predictions.model": "tags"})
    no_trouble(app)
    drawn = component(app, "spans")
    parts, marks = drawn["parts"], [part for part in drawn["parts"] if "kind" in part]
    assert "".join(part["text"] for part in parts) == text
    (output,) = loaded("tags", task_home).task.predict([text])
    assert [part["text"] for part in marks] == [one["text"] for one in output["entities"]]
    labels = [one["type"] for one in output["entities"]]
    assert labels and {one["label"]: one["note"] for one in drawn["legend"]} == {
        label: f" {labels.count(label)}" for label in labels
    }
    assert [drawn["legend"][part["kind"]]["label"] for part in marks] == labels
    assert [one["kind"] for one in drawn["legend"]] == list(range(len(set(labels))))


def test_every_word_is_marked_where_labels_are_no_entities(open_app, task_home):
    text = "the cat ran in London  and sat in <b>Paris</b>"
    app = open_app(page="task_predictions", a=text, **{"task_predictions.model": "words"})
    no_trouble(app)
    drawn = component(app, "spans")
    marks = [part for part in drawn["parts"] if "kind" in part]
    (output,) = loaded("words", task_home).task.predict([text])
    labels = list(output["labels"])
    assert "".join(part["text"] for part in drawn["parts"]) == text and "entities" not in output
    assert [part["text"] for part in marks] == list(output["words"]) and len(set(labels)) > 1
    assert [drawn["legend"][part["kind"]]["label"] for part in marks] == labels
    assert [(one["label"], one["note"]) for one in drawn["legend"]] == [
        (label, f" {labels.count(label)}") for label in dict.fromkeys(labels)
    ]
    for part, label, chance in zip(marks, labels, output["probabilities"]):
        assert part["tip"] == f"{part['text']}: {label}, {percent(chance)}"


@pytest.fixture
def doubtful(task_home, tmp_path, monkeypatch):
    """A models folder with one more model: it may find no answer, and never finds one."""
    import shutil

    from bert_tf.finetuning.task_folder import save_task

    shutil.copytree(task_home, tmp_path / "home")
    bert = loaded("answers", task_home)
    page_text = bert.task.settings
    settings = page_text.replace(extra={**page_text.extra, "no_answer": True, "threshold": -1e9})
    save_task(tmp_path / "home" / "doubtful", bert.config, bert.tokenizer, bert.task.network, settings)
    (tmp_path / "home" / "explorer.toml").write_text(LIMITS.replace('"plain",', '"plain", "doubtful",'))
    task_models._settings.clear()
    return use_models_in(tmp_path / "home", monkeypatch)


def test_a_question_without_an_answer_marks_nothing(open_app, doubtful):
    passage = "the cat sat on the mat. it was in London."
    app = open_app(page="task_predictions", a="where was it", b=passage, **{"task_predictions.model": "doubtful"})
    no_trouble(app)
    (output,) = loaded("doubtful", doubtful).task.predict([{"question": "where was it", "passage": passage}])
    assert output["start"] is None and output["n_best"]
    assert f"finds no answer in the passage (probability of no answer {percent(output['probability'])})" in page_text(
        app
    )
    parts = component(app, "spans")["parts"]
    assert "".join(part["text"] for part in parts) == passage and not any("kind" in part for part in parts)
    assert list(tables(app)[0]["answer"]) == [one["text"] for one in output["n_best"]]


def test_an_answer_is_marked_where_the_library_finds_it(open_app, task_home):
    passage = "the dog ran in the park. the cat sat on the mat. it was in London."
    app = open_app(page="task_predictions", a="where was it", b=passage, **{"task_predictions.model": "answers"})
    no_trouble(app)
    (output,) = loaded("answers", task_home).task.predict([{"question": "where was it", "passage": passage}])
    parts = component(app, "spans")["parts"]
    assert "".join(part["text"] for part in parts) == passage
    assert [part["text"] for part in parts if "kind" in part] == [output["answer"]]
    assert list(tables(app)[0]["answer"]) == [one["text"] for one in output["n_best"]]


def test_endings_are_weighed_against_each_other(open_app):
    app = open_app(
        page="task_predictions",
        a="the cat",
        b="sat on the mat\nran in the park",
        **{"task_predictions.model": "endings"},
    )
    no_trouble(app)
    app = open_app(page="task_predictions", a="the cat", b="sat on the mat", **{"task_predictions.model": "endings"})
    assert "at least 2" in page_text(app) and not app.exception


@pytest.mark.parametrize("page", ["task_predictions", "side_by_side", "architecture"])
def test_endings_that_are_left_out_are_said(open_app, page):
    link = {"page": page, "a": "the cat", "model": "endings", "with": "plain", "architecture.open": "task"}
    for number in (12, 13):
        app = finished(open_app(b="sat\n" * number, **link))
        no_trouble(app)
        assert ("The first 12 endings are read." in page_text(app)) == (number > 12)


def test_an_ending_that_is_there_twice_has_two_probabilities_in_the_saved_files(open_app, saved):
    endings = "sat on the mat\nran in the park\nsat on the mat"
    app = open_app(page="task_predictions", a="the cat", b=endings, **{"task_predictions.model": "endings"})
    no_trouble(app)
    menu, names = saved["endings"], ["sat on the mat (1)", "ran in the park", "sat on the mat (3)"]
    assert [row[0] for row in menu["rows"]] == menu["json"]["endings"] == names
    near([row[1] for row in menu["rows"]], menu["json"]["probabilities"])
    assert list(menu["figures"]["Probabilities"].data[0].y) == names
    app = finished(open_app(page="side_by_side", a="the cat", b=endings, model="endings", **{"with": "plain"}))
    (card,) = [card for cards in components(app, "bars") for card in cards["cards"] if card["title"] == "The ending"]
    assert {row["text"] for row in card["predictions"]} == set(names)


@pytest.mark.parametrize("model, b", [("classes", ""), ("tags", ""), ("answers", "the cat sat on the mat.")])
def test_a_task_is_there_in_bfloat16_too(open_app, model, b):
    app = open_app(
        page="task_predictions", a="the cat sat", b=b, precision="bfloat16", **{"task_predictions.model": model}
    )
    no_trouble(app)
    assert app.code  # the page was drawn to its end


def test_words_that_the_limits_cut_are_said_to_be_left_out(open_app, task_home, tmp_path, monkeypatch):
    from ui.session import state

    (tmp_path / "explorer.toml").write_text(LIMITS.replace("[text]", "[text]\nmax_tokens = 6"))
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "explorer.toml"))
    state.limits.clear()
    link = {"page": "task_predictions", "task_predictions.model": "classes"}
    says = "The words below are those that the model reads at once"
    assert says in page_text(run_until_done(open_app(a="the cat sat on the mat", **link)))
    assert says not in page_text(run_until_done(open_app(a="the cat sat", **link)))


def test_what_a_classifier_does_not_read_is_said_and_not_scored(open_app, task_home):
    text = "the cat sat on the mat " * 40
    app = open_app(page="task_predictions", a=text, **{"task_predictions.model": "classes"})
    no_trouble(app)
    bert = loaded("classes", task_home)
    packed = bert.tokenizer.encode(text, max_length=bert.task.settings.max_length)
    assert f"reads {packed.length} tokens at once: {packed.truncated.tokens_a} tokens of text A" in page_text(app)
    app.toggle(key="w_task_words").set_value(True).run()
    words = [part for part in component(run_until_done(app), "marks")["a"] if "tip" in part]
    assert len(words) == sum(one is not None for one in packed.sources)
    assert param(app, "task_predictions.words") == "1"
    again = run_until_done(
        open_app(
            page="task_predictions", a=text, **{"task_predictions.model": "classes", "task_predictions.words": "1"}
        )
    )
    assert again.toggle(key="w_task_words").value and component(again, "marks")["a"] == component(app, "marks")["a"]


@pytest.mark.parametrize("page", ["saliency", "patching", "logit_lens", "ablation"])
def test_the_lines_about_a_class_run(open_app, page, capsys):
    link = {"patching.a": "the dog sat"} if page == "patching" else {}
    app = finished(open_app(page=page, a="the cat sat", model="classes", **link))
    exec(app.code[0].value, {})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("model", ["classes", "tags", "answers"])
def test_examples_and_texts_that_cannot_be_read_are_answered(open_app, model):
    app = open_app(page="task_predictions", a=" ", b=" ", **{"task_predictions.model": model})
    assert "is empty" in page_text(app) and not app.exception
    app.button_group(key="w_task_example").set_value(app.button_group(key="w_task_example").options[0]).run()
    no_trouble(app)
    app.text_area(key="w_text_a").set_value("word " * 2000).run()
    assert "10,000 characters; at most 5,000" in page_text(app) and not app.exception


def test_without_a_fine_tuned_model_the_page_says_how_to_get_one(open_app, explorer_home, monkeypatch):
    use_models_in(explorer_home, monkeypatch)
    for page in ("task_predictions", "fine_tuning_changes"):
        app = open_app(page=page)
        no_trouble(app)
        assert "under Fine-tune." in page_text(app) and "bert_tf" not in page_text(app)


def test_before_and_after_shows_the_heads_that_moved_most(open_app, task_home):
    from bert_tf.explain import attention_divergence

    text = "the cat sat on the mat"
    app = open_app(page="fine_tuning_changes", a=text, **{"fine_tuning_changes.model": "classes"})
    no_trouble(app)
    traces = [loaded(name, task_home).trace(text) for name in ("plain", "classes")]
    wanted = attention_divergence(*traces).divergences
    layer, head = np.unravel_index(wanted.argmax(), wanted.shape)
    assert app.button_group(key="w_fine_tuning_changes_head").value == f"{layer + 1}.{head + 1}"
    before, after = (loaded(name, task_home).trace(text).attentions[layer, head] for name in ("plain", "classes"))
    (drawn,) = figure(app, 1)["data"]
    np.testing.assert_allclose(array(drawn["z"]), after - before, atol=1e-3)
    assert "Is attention an explanation? No, not by itself." in page_text(app)
    app.button(key="w_Open after").click().run()
    no_trouble(app)
    assert app.selectbox(key="w_model").value == "classes"
    assert any(type(getattr(one, "proto", None)).__name__ == "BidiComponent" for one in walk(app._tree.root))


BOXES = {
    "classes": ("A warm film.", "", "Class head"),
    "tags": ("She ran to Paris.", "", "Word label head"),
    "answers": ("Who ran?", "She ran to Paris.", "Answer head"),
    "endings": ("She ran to", "Paris.\nthe bank.", "Choice head"),
}


@pytest.mark.parametrize("name", BOXES)
def test_the_task_head_is_a_box_of_the_architecture(open_app, task_home, name):
    a, b, title = BOXES[name]
    app = open_app(page="architecture", model=name, a=a, b=b, **{"architecture.open": "task"})
    no_trouble(app)
    boxes = {box["name"]: box for box in component(app, "tower")["boxes"]}
    assert boxes["task"]["title"] == title and title in page_text(app)
    bert = loaded(name, task_home)
    if name == "classes":
        on_page = dict(zip(app.dataframe[0].value["class"], app.dataframe[0].value["probability"]))
        (wanted,) = bert.task.predict([a])
        assert on_page == pytest.approx(wanted["probabilities"], abs=1e-4)
    elif name == "endings":
        (wanted,) = bert.task.predict([{"context": a, "choices": b.splitlines()}])
        assert list(app.dataframe[0].value["probability"]) == pytest.approx(wanted["probabilities"], abs=1e-4)
    else:
        from bert_tf.explain.models.architecture import task_head_activations

        actual = task_head_activations(bert, bert.trace(a, b or None))
        wanted = actual["logits"] if name == "tags" else np.stack([actual["start_logits"], actual["end_logits"]], 1)
        assert drawn_values(app) == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize(
    "model, b, says",
    [
        ("classes", "", "one class is the likeliest even if none fits"),
        ("score", "", "no measure of its certainty"),
        ("tags", "", "these labels alone"),
        ("endings", "on.\nin.", "one is the likeliest even if none fits"),
    ],
)
def test_what_a_task_does_not_show_is_said(open_app, model, b, says):
    app = open_app(page="task_predictions", a="The cat sat", b=b, **{"task_predictions.model": model})
    no_trouble(app)
    assert says in page_text(app)


def drawn_values(app):
    """The numbers of the heatmap of values that the architecture page draws."""
    specs = [
        json.loads(element.proto.spec)
        for element in walk(app._tree.root)
        if type(element.proto).__name__ == "PlotlyChart"
    ]
    z = next(trace["z"] for spec in specs for trace in spec["data"] if trace["type"] == "heatmap")
    return np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape([int(n) for n in z["shape"].split(",")])


def beside(open_app, one, other, **link):
    return finished(open_app(page="side_by_side", model=one, **{"with": other, "a": "the cat sat", **link}))


def test_the_classes_of_both_sides_are_compared(open_app, task_home):
    app = beside(
        open_app,
        "classes",
        "classes",
        **{"side_by_side.what": "texts", "side_by_side.a": "a dog ran", "side_by_side.b": ""},
    )
    first, second = loaded("classes", task_home).task.predict(["the cat sat", "a dog ran"])
    cards = [one["cards"][0] for one in components(app, "bars")]
    for card, output in zip(cards, (first, second), strict=True):
        shown = {one["text"]: one["p"] for one in card["predictions"]}
        assert shown == pytest.approx(output["probabilities"], abs=1e-6)
        assert list(shown) == sorted(shown, key=lambda label: -shown[label])
    table = tables(app)[0].set_index("class")
    for label, share in first["probabilities"].items():
        assert table["difference"][label] == pytest.approx(share - second["probabilities"][label], abs=1e-5)


def test_a_side_that_was_not_fine_tuned_says_so(open_app):
    app = beside(open_app, "classes", "plain")
    assert page_text(app).count("Not fine-tuned: no classes") == 1 and len(components(app, "bars")) == 1
    app = beside(open_app, "classes", "score")
    assert "classes was fine-tuned to classify texts, score to give a score" in page_text(app)


@pytest.mark.parametrize(
    "one, other, b, says",
    [
        ("score", "score", "", "The scores differ by 0.00."),
        ("tags", "tags", "", "0 of 3 labelled spans differ."),
        ("answers", "answers", "the cat sat on the mat.", "Both give the same answer."),
        ("answers", "tags", "the cat sat.", "answer questions, tags to mark words"),
        ("pairs", "classes", "", "It judges pairs: type a text B."),
        ("endings", "endings", "a dog", "type at least two as text B"),
        ("classes", "either", "", "no class of the same name"),
    ],
)
def test_other_tasks_stand_side_by_side(open_app, one, other, b, says):
    assert says in page_text(beside(open_app, one, other, b=b))


def test_marks_that_differ_are_listed(open_app, task_home, tmp_path, monkeypatch):
    import shutil

    from bert_tf.finetuning.task_folder import save_task
    from tests.conftest import randomise

    home = tmp_path / "home"
    shutil.copytree(task_home, home)
    bert = loaded("tags", task_home)
    randomise(bert.task.network, 9)
    save_task(home / "tags-two", bert.config, bert.tokenizer, bert.task.network, bert.task.settings)
    (home / "explorer.toml").write_text(LIMITS.replace('"plain",', '"plain", "tags-two",'))
    use_models_in(home, monkeypatch)
    text = "the cat ran in London and sat in Paris"
    app = beside(open_app, "tags", "tags-two", a=text)
    marks = []
    for folder in (home / "tags", home / "tags-two"):
        (output,) = loaded(folder.name, home).task.predict([text])
        marks.append({(one["start"], one["end"]): one["type"] for one in output["entities"]})
    apart = [place for place in sorted(marks[0] | marks[1]) if marks[0].get(place) != marks[1].get(place)]
    assert apart and list(tables(app)[0]["text"]) == [text[start:end] for start, end in apart]


def test_classes_are_followed_layer_by_layer_on_both_sides(open_app, task_home):
    from bert_tf.explain import class_lens

    link = {
        "side_by_side.what": "texts",
        "side_by_side.a": "a dog ran",
        "side_by_side.b": "",
        "side_by_side.look": "layers",
    }
    app = beside(open_app, "classes", "classes", **link)
    bert = loaded("classes", task_home)
    lenses = [class_lens(bert, bert.trace(text)) for text in ("the cat sat", "a dog ran")]
    table = tables(app)[-1]
    for side, lens in zip(("one", "other"), lenses):
        assert list(table[side]) == [lens.labels[state.argmax()] for state in lens.values]
    assert list(table[" "]) == ["" if one == other else "≠" for one, other in zip(table["one"], table["other"])]


@pytest.mark.parametrize(
    "one, other, says",
    [
        ("classes", "plain", "needs a word that is hidden on both sides"),
        ("classes", "score", "One side predicts a score"),
    ],
)
def test_what_a_side_lacks_for_its_layers_is_said(open_app, one, other, says):
    assert says in page_text(beside(open_app, one, other, **{"side_by_side.look": "layers"}))


def test_before_and_after_says_what_both_say(open_app, task_home, saved):
    app = open_app(
        page="fine_tuning_changes", a="the cat sat", b="it ran", mask="a1", **{"fine_tuning_changes.model": "classes"}
    )
    no_trouble(app)
    before, after = (loaded(name, task_home) for name in ("plain", "classes"))
    (output,) = after.task.predict(["the cat sat"])
    task, words = [one["cards"][0] for one in components(app, "bars")]
    assert {one["text"]: one["p"] for one in task["predictions"]} == output["probabilities"]
    answers = [bert.fill_mask(bert.trace("the cat sat", "it ran", mask=["cat"]), 500)[0] for bert in (before, after)]
    shares = [{one.token: one.probability for one in answer.predictions} for answer in answers]
    for one in words["predictions"]:
        assert (one["was"], one["p"]) == pytest.approx([share[one["text"]] for share in shares], abs=1e-5)
    assert "IsNext: " in page_text(app)
    rows = saved["what-it-says"]["json"]["rows"]
    assert [(row["item"], row["after"]) for row in rows if row["of"] == "classify"] == [
        (label, pytest.approx(share)) for label, share in output["probabilities"].items()
    ]
    guesses = [row for row in rows if row["of"].startswith("cat (token ")]
    assert [(row["item"], row["before"], row["after"]) for row in guesses] == [
        # A record has seven decimals.
        (one["text"], pytest.approx(one["was"], abs=1e-7), pytest.approx(one["p"], abs=1e-7))
        for one in words["predictions"]
    ]
    assert rows[-1]["of"] == "IsNext" and 0 < rows[-1]["before"] < 1
    app.button(key="w_fine_tuning_changes_compare").click().run()
    no_trouble(app)
    assert app.selectbox(key="w_side_by_side_model").value == "plain"
    assert app.selectbox(key="w_side_by_side_other").value == "classes"


def test_predict_does_not_ask_for_a_hidden_word_that_the_model_cannot_predict(open_app, tmp_path, monkeypatch):
    from bert_tf import checkpoints
    from tests.app.conftest import use_models_in
    from tests.conftest import make_bert

    bare = make_bert(seed=5, with_heads=("pooler",), name="bare-pooler")
    checkpoints.save(tmp_path / "bare-pooler", bare.config, bare.tokenizer, bare.model)
    (tmp_path / "explorer.toml").write_text('[models]\ndefault = "bare-pooler"\nwarm = false\n')
    use_models_in(tmp_path, monkeypatch)
    for link in ({}, {"mask": "a1"}):
        app = open_app(page="predict", model="bare-pooler", a="the cat sat", **link)
        no_trouble(app)
        (warning,) = app.warning
        assert "in its checkpoint" in warning.value
        assert "Nothing is hidden yet" not in page_text(app)


def test_predict_leads_to_the_task_of_a_model_without_masked_words(open_app, tmp_path, monkeypatch):
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type
    from tests.conftest import make_bert

    settings = TaskSettings("classify", labels=("no", "yes"))
    for name in ("bare-first", "bare-second"):
        bert = make_bert(seed=5, with_heads=("pooler",), name=name)
        network = network_over(bert.model, task_type(settings.task), settings)
        save_task(tmp_path / name, bert.config, bert.tokenizer, network, settings)
    (tmp_path / "explorer.toml").write_text('[models]\ndefault = "bare-first"\nwarm = false\n')
    use_models_in(tmp_path, monkeypatch)
    link = {"task_predictions.model": "bare-first"}
    app = open_app(page="predict", model="bare-second", a="the cat sat", mask="a1", **link)
    app.button(key="w_predict_task").click().run()
    no_trouble(app)
    assert param(app, "page") == "task_predictions"
    assert app.segmented_control(key="w_task_model").value == "bare-second"


def test_a_model_with_words_of_its_own_answers_alone(open_app, task_home, tmp_path, monkeypatch, saved):
    import shutil

    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type
    from tests.conftest import make_bert

    settings = TaskSettings("classify", labels=("no", "yes"))
    bert = make_bert(seed=5, lower_case=True)
    network = network_over(bert.model, task_type(settings.task), settings)
    save_task(tmp_path / "own-words", bert.config, bert.tokenizer, network, settings)
    (tmp_path / "own-words" / "report").mkdir()
    (tmp_path / "own-words" / "report" / "metrics.json").write_text('{"start": "plain"}')
    shutil.copytree(task_home / "plain", tmp_path / "plain")
    (tmp_path / "explorer.toml").write_text('[models]\ndefault = "plain"\nwarm = false\n')
    use_models_in(tmp_path, monkeypatch)
    app = open_app(page="fine_tuning_changes", a="Cat sat", mask="a1", **{"fine_tuning_changes.model": "own-words"})
    no_trouble(app)
    (answer,) = loaded("own-words", tmp_path).task.predict(["Cat sat"])
    ((card,),) = [one["cards"] for one in components(app, "bars")]
    assert {one["text"]: one["p"] for one in card["predictions"]} == answer["probabilities"]
    assert "The two models cut the text into different tokens" in page_text(app) and not app.get("plotly_chart")
    assert {row["item"] for row in saved["what-it-says"]["json"]["rows"]} == {"no", "yes"}


@pytest.mark.parametrize("text, drawn", [("the cat sat", True), ("[MASK] " * 40, False)])
def test_before_and_after_says_once_what_is_not_read_and_refuses_too_many_masks(open_app, text, drawn):
    app = open_app(page="fine_tuning_changes", a=text, b="\u200b", **{"fine_tuning_changes.model": "classes"})
    no_trouble(app)
    assert page_text(app).count("Text B holds nothing that the model can read") == 1
    assert bool(app.get("plotly_chart")) == drawn != ("There are 40 masks; at most" in page_text(app))


def test_before_and_after_names_the_side_without_a_head(open_app, task_home, tmp_path, monkeypatch):
    import shutil

    from bert_tf import checkpoints
    from tests.conftest import make_bert
    from ui.session import model_store, state

    home = tmp_path / "home"
    shutil.copytree(task_home, home)
    bare = make_bert(seed=5, with_heads=("pooler",), name="bare-pooler")
    shutil.rmtree(home / "plain")
    checkpoints.save(home / "plain", bare.config, bare.tokenizer, bare.model)
    monkeypatch.setenv("BERT_TF_HOME", str(home))
    state.limits.clear()
    model_store.catalogue.clear()
    model_store._models.clear()
    app = open_app(page="fine_tuning_changes", a="the cat sat", b="it ran", **{"fine_tuning_changes.model": "classes"})
    no_trouble(app)
    assert "plain has no head for masked words" in page_text(
        app
    ) and "The models do not have the same head for pairs" in page_text(app)
    model_store._models.clear()


def test_before_and_after_shows_what_the_updates_of_lora_do(open_app, task_home, tmp_path, monkeypatch):
    import shutil

    import numpy as np

    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type
    from bert_tf.training.lora import add_lora
    from ui.session import model_store, state

    home = tmp_path / "home"
    shutil.copytree(task_home, home)
    monkeypatch.setenv("BERT_TF_HOME", str(home))
    start = loaded("plain", home)
    settings = TaskSettings("classify", ("bad", "good"), pooling="mean", extra={"lora_rank": 2})
    network = network_over(start.model, task_type("classify"), settings)
    add_lora(network, 2)
    rng = np.random.default_rng(0)
    for variable in network.trainable_variables:
        if "lora" in variable.name:
            variable.assign(rng.normal(0, 0.3, variable.shape))
    save_task(home / "adapter", start.config, start.tokenizer, network, settings, delta_of=home / "plain")
    (home / "explorer.toml").write_text(LIMITS.replace('"plain", "classes"', '"plain", "adapter", "classes"'))
    monkeypatch.setenv("BERT_TF_EXPLORER", str(home / "explorer.toml"))
    state.limits.clear()
    model_store.catalogue.clear()
    model_store._models.clear()
    app = open_app(page="fine_tuning_changes", a="the cat sat", **{"fine_tuning_changes.model": "adapter"})
    no_trouble(app)
    assert "Trained by LoRA: to each matrix of the layers a product of two matrices of rank 2" in page_text(app)
    before, after = (loaded(name, home).trace("the cat sat").attentions for name in ("plain", "adapter"))
    assert np.abs(before - after).max() > 0.01
    assert "exactly as before" not in page_text(app)
    model_store._models.clear()


def test_layers_that_attend_as_before_are_named(open_app, monkeypatch):
    import dataclasses

    from bert_tf.analyses import Call
    from pages.tasks import fine_tuning_changes

    measured = fine_tuning_changes._DIVERGENCE

    def frozen(*traces):
        result = measured.run(*traces)
        return dataclasses.replace(result, divergences=result.divergences * [[0], [1]])

    link = {"page": "fine_tuning_changes", "fine_tuning_changes.model": "classes"}
    assert "exactly as before" not in page_text(open_app(a="the cat", **link))
    monkeypatch.setattr(fine_tuning_changes, "_DIVERGENCE", Call.of(frozen))
    app = open_app(a="the cat sat on", **link)
    no_trouble(app)
    assert "Layer 1 attends exactly as before, as frozen layers do." in page_text(app)


def test_before_and_after_holds_its_maps_in_the_bounded_store_alone(open_app):
    from ui.session import trace_store

    app = open_app(page="fine_tuning_changes", a="the cat sat", **{"fine_tuning_changes.model": "classes"})
    no_trouble(app)
    places = app.session_state["_kept"]._places
    moved, output = (places[name].value for name in ("fine_tuning_changes", "fine_tuning_changes_says"))
    assert moved.divergences.shape == (2, 4) and all(one.attentions is None for one in output)
    assert {key[1] for key in trace_store._store()._entries if key[3] == "the cat sat"} >= {"plain", "classes"}


@pytest.mark.parametrize(
    "model, b, names",
    [
        ("classes", "", ("classes", "words")),
        ("score", "", ("score", "words")),
        ("tags", "", ("marked",)),
        ("answers", "the cat sat on the mat.", ("answers",)),
        ("endings", "sat on the mat\nran in the park", ("endings",)),
    ],
)
def test_what_a_task_says_is_saved(open_app, task_home, saved, model, b, names):
    from ui.session import task_models

    offered(
        finished(open_app(page="task_predictions", a="the cat sat", b=b, **{"task_predictions.model": model})),
        saved,
        names,
    )
    bert = loaded(model, task_home)
    (output,) = bert.task.predict([task_models.record(bert.task.settings, "the cat sat", b)])
    actual = saved[names[0]]
    if model == "classes":
        shares = dict(zip(actual["npz"]["class"].tolist(), column(actual, "probability")))
        near([shares[name] for name in output["probabilities"]], list(output["probabilities"].values()))
    elif model == "score":
        near(column(actual, "value"), [output["value"]])
    elif model == "tags":
        assert len(actual["rows"]) == len(output["entities"])
    elif model == "answers":
        near(actual["npz"]["start_probabilities"], output["start_probabilities"])
    else:
        near(column(actual, "probability"), output["probabilities"])


def test_the_words_that_mattered_are_saved(open_app, task_home, saved):
    from bert_tf.explain import occlusion
    from bert_tf.explain.attribution.target import class_target

    finished(open_app(page="task_predictions", a="the cat sat", **{"task_predictions.model": "classes"}))
    bert = loaded("classes", task_home)
    trace = bert.trace("the cat sat")
    wanted = occlusion(bert, trace, class_target(bert, trace), unit="word")
    near(column(saved["words"], "score"), [one.score for one in wanted.words])


def test_before_and_after_is_saved(open_app, task_home, saved):
    text = "the cat sat on the mat"
    app = finished(
        open_app(
            page="fine_tuning_changes",
            a=text,
            **{"fine_tuning_changes.model": "classes", "fine_tuning_changes.head": "2.1"},
        )
    )
    (name,) = saved.keys() - {"heads-moved", "what-it-says"}
    offered(app, saved, ("heads-moved", "what-it-says", name))
    layer, head = (int(part) - 1 for part in name.split("-")[2::2])
    for side, model in (("before", "plain"), ("after", "classes")):
        near(saved[name]["npz"][side], loaded(model, task_home).trace(text).attentions[layer, head])


def test_the_classes_by_layer_are_saved(open_app, task_home, saved):
    from bert_tf.explain import class_lens

    finished(open_app(page="logit_lens", a="the cat sat", model="classes"))
    bert = loaded("classes", task_home)
    near(saved["class-by-layer"]["npz"]["values"], class_lens(bert, bert.trace("the cat sat")).values)


@pytest.mark.parametrize(
    "model, b, look, name",
    [
        ("classes", "", "attention", "classes-compared"),
        ("score", "", "attention", "answers-compared"),
        ("tags", "", "attention", "marks-compared"),
        ("answers", "the cat sat on the mat.", "attention", "answers-compared"),
        ("classes", "", "layers", "classes-by-layer-compared"),
        ("score", "", "layers", "scores-by-layer-compared"),
    ],
)
def test_what_two_tasks_say_is_saved(open_app, task_home, saved, model, b, look, name):
    from bert_tf.explain import class_lens

    app = beside(open_app, model, model, b=b, **{"side_by_side.look": look})
    offered(app, saved, saved)
    bert, actual = loaded(model, task_home), saved[name]
    if look == "layers":
        lens = class_lens(bert, bert.trace("the cat sat"))
        near(
            actual["npz"]["values_a" if model == "classes" else "scores_a"],
            lens.values if model == "classes" else lens.values[1:, 0],
        )
    elif model == "classes":
        (output,) = bert.task.predict(["the cat sat"])
        shares = dict(zip(actual["npz"]["class"].tolist(), column(actual, "one")))
        near([shares[label] for label in output["probabilities"]], list(output["probabilities"].values()))
    elif model == "tags":
        assert actual["json"]["one"] == actual["json"]["other"] and len(actual["rows"]) == len(actual["json"]["one"])
    else:
        assert len(actual["rows"]) == 2 and actual["rows"][0][1:] == actual["rows"][1][1:]


def test_a_task_without_a_note_came_from_a_model_of_its_own_type(monkeypatch):
    """A discriminator may have every size of the BERT that a task was trained over."""
    config = BertConfig(num_hidden_layers=1)
    judge = config.replace(model_type="electra", embedding_size=config.hidden_size)
    here = [
        SimpleNamespace(name=name, path=ROOT, config=one)
        for name, one in (("judge", judge), ("bert", config), ("task", config))
    ]
    monkeypatch.setattr(task_models.model_store, "installed", lambda: here)
    monkeypatch.setattr(task_models, "names", lambda: {"task": TaskSettings("classify", labels=("no", "yes"))})
    assert task_models.pairs() == {"task": "bert"}


def test_a_long_text_is_classified_in_windows(open_app, task_home):
    text = "the cat sat on the mat in the park and the dog ran to the river bank of the city. " * 30
    app = open_app(page="task_predictions", a=text, **{"task_predictions.model": "classes"})
    assert "at the end are left out" in page_text(app)
    app.segmented_control(key="w_task_windows").set_value("max").run()
    no_trouble(app)
    assert "left out" not in page_text(app) and param(app, "task_predictions.windows") == "max"
    expected = loaded("classes", task_home).task.with_windows("max").predict([text])[0]["probabilities"]
    drawn = app.get("plotly_chart")[0].proto.spec
    assert all(f"{probability:.3f}"[:4] in drawn for probability in expected.values())


@pytest.mark.parametrize("link, other", [(None, ()), ("foo", ()), ("mean", ()), ("max", ("max",)), ("cut", (None,))])
def test_windows_as_in_the_training_keep_its_step(open_app, trained_in_windows, link, other):
    text = "the cat sat on the mat in the park and the dog ran to the river bank of the city. " * 20
    setting = {} if link is None else {"task_predictions.windows": link}
    app = open_app(page="task_predictions", a=text, **setting)
    no_trouble(app)
    task = bert_tf.load(trained_in_windows).task
    (expected,) = (task.with_windows(*other) if other else task).predict([text])
    bars = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]
    near(array(bars["x"]), [expected["probabilities"][label] for label in bars["y"]])
    assert app.segmented_control(key="w_task_windows").value == (link if other else "mean")
    assert ("left out" in page_text(app)) == (link == "cut")


def test_two_sentences_have_a_cosine(open_app, task_home):
    pair = ("The cat sat on the mat.", "A dog ran in the park.")
    app = open_app(page="task_predictions", a=pair[0], b=pair[1], **{"task_predictions.model": "alike"})
    no_trouble(app)
    expected = loaded("alike", task_home).task.predict([pair])[0]["value"]
    assert app.metric[0].value == f"{expected:.3f}"
