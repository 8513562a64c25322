"""Copy as Python: every page's lines run, and say what the page says."""

import pytest

import bert_tf
from bert_tf.explain import compare
from tests.app.look import settled
from ui.snippets import _BODIES, Beside, written
from ui.view import PAGES, View

PAIR = {"a": 'The "bunny" ate {the} carrot.', "b": "It was good."}


# What these two say needs a fine-tuned model: see test_tasks.
OF_TASKS = {"tasks", "finetuned"}


@pytest.mark.parametrize("page", [page for page in _BODIES if page not in OF_TASKS])
def test_the_lines_of_a_page_run_as_they_stand(page, capsys):
    view = View(page=page, model="tiny-cased", other="tiny-uncased", layer=1, head=2, **PAIR)
    if page == "patching":
        view = view.with_setting("patching.a", 'The "bunny" ran {the} carrot.')
    exec(written(view, (2, 4), Beside("tiny-uncased", view.a, view.b, (2, 4))), {})
    assert capsys.readouterr().out.strip()


def test_every_page_with_lines_is_a_page():
    assert set(_BODIES) <= set(PAGES)


def test_the_lines_predict_what_the_page_shows(capsys, open_app):
    from tests.app.look import component

    app = open_app(a="The bunny ate the carrot.", mask="a1", model="tiny-cased")
    shown = component(app, "bars")["cards"][0]
    exec(app.code[0].value, {})
    assert f"{shown['predictions'][0]['text']!r}" in capsys.readouterr().out


def lines_of(app):
    """The page's lines, once the work beside it is done."""
    return settled(app).code[0].value


# These ask about a mask or a pair.
ASKING = {"ablation", "saliency", "patching", "whatif"}


@pytest.mark.parametrize("page, texts", [
    (page, texts) for page in _BODIES if page not in OF_TASKS for texts in ({"a": "The bunny ate it."}, PAIR)
    if page not in ASKING or "b" in texts
])  # fmt: skip
def test_the_lines_run_where_nothing_is_hidden(page, texts, capsys, open_app):
    exec(lines_of(open_app(page=page, model="tiny-cased", **texts)), {})
    assert capsys.readouterr().out.strip()


def test_the_lines_of_two_texts_compare_these_texts(capsys, open_app):
    link = {"compare.what": "texts", "compare.a": "The dog ate the bone.", "compare.mask": "a1", "with": "not-here"}
    app = open_app(page="compare", a="The bunny ate the carrot.", mask="a1", model="tiny-cased", **link)
    assert not app.error
    exec(lines_of(app), {})
    bert = bert_tf.load("tiny-cased")
    hidden = {"The bunny ate the carrot.": "bunny", "The dog ate the bone.": "dog"}
    traces = [bert.trace(text, mask=[word]) for text, word in hidden.items()]
    mask = compare(*traces, bert.tokenizer, bert.tokenizer, 3, 3, across=True).masks[0]
    assert capsys.readouterr().out.split()[:2] == [f"{mask.overlap}", f"{mask.divergence}"]


def test_the_lines_of_layer_likeness_hide_nothing(open_app):
    assert "mask" not in lines_of(open_app(page="cka", a="The bunny ate it.", mask="a1", model="tiny-cased"))


def test_the_second_model_computes_as_the_first(open_app):
    app = open_app(page="compare", a="The bunny ate it.", mask="a1", model="tiny-cased", precision="bfloat16")
    assert lines_of(app).count("precision='bfloat16'") == 2


def test_without_a_text_there_are_no_lines(open_app):
    assert not open_app(page="predict", a=" ").code
