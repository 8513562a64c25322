"""Copy as Python: every page's lines run, and say what the page says."""

import pytest

from ui.snippets import _BODIES, written
from ui.view import PAGES, View

PAIR = {"a": 'The "bunny" ate {the} carrot.', "b": "It was good."}


# What these two say needs a fine-tuned model: see test_tasks.
OF_TASKS = {"tasks", "finetuned"}


@pytest.mark.parametrize("page", [page for page in _BODIES if page not in OF_TASKS])
def test_the_lines_of_a_page_run_as_they_stand(page, capsys):
    view = View(page=page, model="tiny-cased", other="tiny-uncased", layer=1, head=2, **PAIR)
    if page == "patching":
        view = view.with_setting("patching.a", 'The "bunny" ran {the} carrot.')
    exec(written(view, (2, 4), (2, 4), "tiny-uncased"), {})
    assert capsys.readouterr().out.strip()


def test_every_page_with_lines_is_a_page():
    assert set(_BODIES) <= set(PAGES)


def test_the_lines_predict_what_the_page_shows(capsys, open_app):
    from tests.app.look import component

    app = open_app(a="The bunny ate the carrot.", mask="a1", model="tiny-cased")
    shown = component(app, "bars")["cards"][0]
    exec(app.code[0].value, {})
    assert f"{shown['predictions'][0]['text']!r}" in capsys.readouterr().out


def test_without_a_text_there_are_no_lines(open_app):
    assert not open_app(page="predict", a=" ").code
