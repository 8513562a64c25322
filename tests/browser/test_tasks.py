"""Task predictions and Fine-tuning changes, in a real Chromium, on random fine-tuned models."""

import csv
import io
import re

import numpy as np
import pytest
from playwright.sync_api import expect

import bert_tf
from bert_tf.explain import Ablation, ablate, attention_divergence, class_curve, class_lens, score_rows
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.explain.models.walk_through import steps_of, walk_through
from bert_tf.plots.numbers import percent
from tests.app.random_task_models import TASKS, save_tasks
from tests.browser.conftest import serving
from tests.browser.page_reading import (
    FIGURE,
    numbers,
    open_page,
    press_row,
    saved,
    wait_for_link,
)
from tests.browser.test_walk_through import expect_bars, go_deeper, press_every_stop
from ui.widgets.formatting import share


@pytest.fixture(scope="module")
def task_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("task-browser")
    save_tasks(home)
    return home


@pytest.fixture(scope="module")
def server(task_home):
    """In the place of the server of the other tests: one with fine-tuned models."""
    with serving(task_home) as address:
        yield address


def test_a_model_is_picked_and_marks_the_visitors_own_text(visit, task_home):
    text = "the cat ran in London"
    page = visit("/?page=task_predictions&task_predictions.model=tags").page
    page.get_by_label("Text").fill(text)
    page.get_by_label("Text").press("Tab")
    (output,) = bert_tf.load(task_home / "tags").task.predict([text])
    actual = [entity["text"] for entity in output["entities"]]
    expect(page.locator(".spans .text")).to_contain_text("London")
    expect(page.locator(".spans .span")).to_have_count(len(actual))
    assert page.locator(".spans .text").inner_text().replace("\n", "").startswith("the")
    page.locator(".spans .span").first.focus()
    expect(page.locator(".spans .hint")).to_contain_text(actual[0])
    page.keyboard.press("End")
    expect(page.locator(".spans .hint")).to_contain_text(actual[-1])

    page.get_by_role("radio", name="classes").click()
    expect(page.get_by_role("heading", name="Classes")).to_be_visible()
    expect(page.locator(".marks .word")).to_have_count(5)
    page.get_by_role("button", name="Open its attention").click()
    expect(page.get_by_role("heading", level=1, name="All heads")).to_be_visible()
    expect(page).to_have_url(re.compile("model=classes"))


def test_classes_have_the_library_s_probabilities(visit, task_home):
    page = visit("/?page=task_predictions&task_predictions.model=classes&a=the+cat+sat").page
    expect(page.get_by_role("heading", name="Classes")).to_be_visible()
    (output,) = bert_tf.load(task_home / "classes").task.predict(["the cat sat"])
    wanted = sorted(output["probabilities"].values(), reverse=True)
    assert numbers(page)[0]["x"] == pytest.approx(wanted, abs=1e-5)


def test_a_labelled_file_is_classified_and_a_row_opens_in_try_one(visit, task_home):
    page = visit("/?page=dataset&model=classes&dataset.ask=classes&dataset.file=upload").page
    texts = ["the cat sat", "a dog ran", "it was good"]
    data = "text,label\n" + "".join(f"{text},good\n" for text in texts)
    file = {"name": "mine.csv", "mimeType": "text/csv", "buffer": data.encode()}
    page.locator("input[type=file]").set_input_files(file)
    actual = bert_tf.load(task_home / "classes").task.predict(texts)
    right = sum(one["label"] == "good" for one in actual) / 3
    expect(page.locator("[data-testid=stMetricValue]").first).to_have_text(f"{right:.3f}")
    counts = [[0, 0], [sum(one["label"] == label for one in actual) for label in ("bad", "good")]]
    assert numbers(page)[0]["z"] == pytest.approx([one / 3 for row in counts for one in row])
    press_row(page, 1)
    page.get_by_role("button", name="Open here").click()
    expect(page.get_by_role("heading", level=1, name="Task predictions")).to_be_visible()
    wait_for_link(page, "a", texts[1])
    expect(page.get_by_role("radio", name="classes")).to_be_checked()


def test_a_class_is_taken_from_another_threshold_on(visit, task_home):
    page = visit("/?page=dataset&model=classes&dataset.ask=classes&dataset.file=upload").page
    rows = [TextRow(number, f"the cat {'sat ' * number}", label=("good", "bad")[number % 2]) for number in range(1, 9)]
    data = "text,label\n" + "".join(f"{row.text_a},{row.label}\n" for row in rows)
    file = {"name": "mine.csv", "mimeType": "text/csv", "buffer": data.encode()}
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("heading", name="At another threshold").wait_for()
    classifier = bert_tf.load(task_home / "classes")
    curve = class_curve(classifier, score_rows(classifier, rows, ("classes",)))
    expect(page.get_by_text(f"area under the ROC curve {curve.auc:.3f}")).to_be_visible()
    page.get_by_role("slider", name="Predicted from a probability of").press("ArrowRight")
    wait_for_link(page, "dataset.threshold", "0.51")
    at = curve.at(0.51)
    expect(page.get_by_text(f"recall {share(at.recall)}, F1 {at.f1:.3f}")).to_be_visible()
    steps, point = numbers(page, 1)
    assert steps["y"] == pytest.approx([*curve.precision, 1], abs=1e-4) and point["x"] == pytest.approx([at.recall])
    assert numbers(page, 2)[0]["x"] == pytest.approx([*curve.false_positive_rate, 0], abs=1e-4)


def test_an_answer_stands_in_the_passage(visit, task_home):
    question, passage = "where was it", "the dog ran. it was in London."
    link = f"/?page=task_predictions&task_predictions.model=answers&a={question}&b={passage}".replace(" ", "+")
    page = visit(link).page
    asked = {"question": question, "passage": passage, "curves": True}
    (output,) = bert_tf.load(task_home / "answers").task.predict([asked])
    expect(page.locator(".spans .span")).to_have_text([output["answer"]])
    begins, ends = numbers(page)
    assert (begins["name"], ends["name"]) == ("begins", "ends")
    assert begins["y"] == pytest.approx(output["start_probabilities"], abs=1e-5)
    assert ends["y"] == pytest.approx(output["end_probabilities"], abs=1e-5)
    saved_rows = list(csv.DictReader(io.StringIO(saved(page))))
    assert [row["answer"] for row in saved_rows] == [one["text"] for one in output["n_best"]]
    assert [float(row["probability"]) for row in saved_rows] == pytest.approx(
        [one["probability"] for one in output["n_best"]], abs=1e-5
    )


@pytest.mark.parametrize("model, second", [("tags", ""), ("answers", "it was in London."), ("pairs", "the dog ran")])
def test_the_attention_of_every_task_opens_on_its_text(visit, task_home, model, second):
    first = "where was the cat"
    page = visit(f"/?page=task_predictions&task_predictions.model={model}&a={first}&b={second}".replace(" ", "+")).page
    page.get_by_role("button", name="Open its attention").click()
    expect(page.get_by_role("heading", level=1, name="All heads")).to_be_visible()
    tokens = bert_tf.load(task_home / model).trace(first, second).tokens
    expect(page.locator(".lines .left .token")).to_have_text(list(tokens))


def test_endings_are_weighed(visit, task_home):
    beginning, endings = "the cat sat", ["it ran", "it ate the carrot", "the dog"]
    link = f"/?page=task_predictions&task_predictions.model=endings&a={beginning}&b={'%0A'.join(endings)}".replace(
        " ", "+"
    )
    page = visit(link).page
    (output,) = bert_tf.load(task_home / "endings").task.predict([{"context": beginning, "choices": endings}])
    bars = numbers(page)[0]
    assert dict(zip(bars["y"], bars["x"])) == pytest.approx(dict(zip(endings, output["probabilities"])), abs=1e-5)
    page.get_by_role("button", name="Open its attention").click()
    # One pass reads one ending: the chosen one.
    expect(page).to_have_url(re.compile(f"b={output['text'].replace(' ', '[+]')}(&|$)"))


def test_classes_layer_by_layer(visit, task_home):
    page = visit("/?page=logit_lens&model=classes&a=the+cat+sat").page
    bert = bert_tf.load(task_home / "classes")
    lens = class_lens(bert, bert.trace("the cat sat", hidden_states=True))
    expect(page.locator(f"{FIGURE} .legendtext").filter(has_text="bad")).to_be_visible()
    drawn = {one["name"]: one["y"] for one in numbers(page)}
    for place, name in enumerate(("bad", "good")):
        assert drawn[name] == pytest.approx(lens.values[:, place].tolist(), abs=1e-5)


def test_what_a_head_does_for_a_class(visit, task_home):
    page = visit("/?page=ablation&model=classes&a=the+cat+sat&ablation.off=1-1").page
    bert = bert_tf.load(task_home / "classes")
    effect = ablate(bert, bert.trace("the cat sat"), Ablation(heads=((0, 0),)))
    expect(page.locator(".bars .share")).to_have_count(len(effect.classes_after))
    shares = page.locator(".bars .share").all_inner_texts()
    after = sorted(effect.classes_after.values(), reverse=True)
    assert [text.split(" → ")[1] for text in shares] == [percent(share) for share in after]


def test_the_heads_that_moved_are_listed(visit, task_home):
    page = visit("/?page=fine_tuning_changes&fine_tuning_changes.model=classes&a=the+cat+sat").page
    expect(page.get_by_role("heading", name="The heads that changed most")).to_be_visible()
    expect(page.locator(FIGURE)).to_have_count(2)
    before, after = (bert_tf.load(task_home / name).trace("the cat sat") for name in ("plain", "classes"))
    wanted = attention_divergence(before, after).divergences
    assert numbers(page)[0]["z"] == pytest.approx(wanted.ravel().tolist(), abs=1e-5)
    layer, head = np.unravel_index(wanted.argmax(), wanted.shape)
    moved = after.attentions[layer, head] - before.attentions[layer, head]
    assert numbers(page, 1)[0]["z"] == pytest.approx(moved.ravel().tolist(), abs=1e-5)
    page.get_by_role("button", name="Open before").click()
    expect(page).to_have_url(re.compile("model=plain"))


def test_a_file_becomes_a_model_of_the_visitor_s(visit):
    page = visit("/?page=fine_tune").page
    labels = ["good", "bad"] * 30
    rows = "".join(f"the film {number} was {label} and long,{label}\n" for number, label in enumerate(labels))
    file = {"name": "films.csv", "mimeType": "text/csv", "buffer": f"text,label\n{rows}".encode()}
    with page.expect_response(lambda answer: "upload_file" in answer.url):
        page.locator("input[type=file]").first.set_input_files(file)
    page.get_by_role("textbox", name="Name", exact=True).fill("Film reviews")
    page.get_by_role("textbox", name="Name", exact=True).press("Tab")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_text(re.compile(r"^own-film-reviews-\d{6}-\d{4}-")).first).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=240_000)
    page.get_by_role("button", name="Try it").click(timeout=240_000)
    page.get_by_role("radio", name="Praise").click()
    expect(page.get_by_role("heading", name="Classes")).to_be_visible()
    # The curves of the page before may still be there.
    page.wait_for_function(f"() => document.querySelector('{FIGURE}')?.data?.[0]?.y?.includes?.('good')")
    bars = numbers(page)[0]
    assert sorted(bars["y"]) == ["bad", "good"] and sum(bars["x"]) == pytest.approx(1, abs=1e-4)
    open_page(page, "Fine-tune")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("for everybody")).to_be_visible()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("button", name="Try it")).to_have_count(0)


@pytest.mark.parametrize("name", TASKS)
def test_a_fine_tuned_model_is_walked_through_to_its_answer(visit, task_home, name):
    first, second = "the cat sat", "it ran to London" if TASKS[name].get("pair") else ""
    link = f"/?page=walk_through&model={name}&a={first}&b={second}".replace(" ", "+")
    page = visit(link, reduced_motion="reduce").page
    bert = bert_tf.load(task_home / name)
    press_every_stop(page, steps_of(bert))
    task = walk_through(bert, bert.trace(first, second or None, hidden_states=True)).task
    if task is None:  # it compares texts, without a head
        return
    if not task.is_probability:
        expect(page.locator(".walk .figure-number b")).to_have_text(f"{task.values[0]:.2f}".replace("-", "−"))
    elif task.task == "answer":
        tokens = bert.trace(first, second).tokens
        best = [order[:5] for order in np.argsort(-task.values, axis=0, kind="stable").T]
        expect(page.locator(".walk .stage h3")).to_have_text(["The answer begins at", "The answer ends at"])
        places = [(place, end) for end, order in enumerate(best) for place in order]
        expect_bars(page, [tokens[place] for place, _ in places], [task.values[at] for at in places])
    else:
        values = task.values[1] if task.task == "tag" else task.values
        order = np.argsort(-values, kind="stable")
        expect_bars(page, [task.labels[index] for index in order], values[order])
    go_deeper(page)
