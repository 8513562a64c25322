"""What stands on a page while a model is read, or work runs beside the page."""

import pytest

from tests.app.page_reading import page_text, run_until_done
from ui import first_paint
from ui.session import jobs, model_store, trace_store
from ui.widgets import inputs


def skeletons(app):
    return [one for one in app.get("html") if one.proto.body == first_paint.SKELETON]


@pytest.fixture
def drawn(monkeypatch):
    """The HTML and the messages that were drawn, also those that were replaced before the run ended."""
    results = {"html": [], "messages": []}
    html, spinner = inputs.st.html, inputs.st.spinner

    def drawing(body, **named):
        results["html"].append(body)
        return html(body, **named)

    def saying(text, **named):
        results["messages"].append((text, named))
        return spinner(text, **named)

    monkeypatch.setattr(inputs.st, "html", drawing)
    monkeypatch.setattr(inputs.st, "spinner", saying)
    return results


def test_a_model_that_is_read_is_named_with_its_size_and_the_seconds_over_grey_shapes(open_app, drawn):
    model_store._models.clear()
    trace_store._store().drop(lambda key: True)  # what another test has left needs no model
    app = open_app(page="predict", model="tiny-uncased")
    output = dict(drawn["messages"])
    (message,) = [text for text in output if text.startswith("Loading")]
    assert "tiny-uncased, " in message and "MB" in message and output[message]["show_time"]
    assert first_paint.SKELETON in drawn["html"] and not skeletons(app), page_text(app)
    drawn["html"].clear()
    app.run()
    assert first_paint.SKELETON not in drawn["html"]


def test_a_model_that_cannot_be_read_leaves_no_grey_shapes(open_app, monkeypatch):
    def broken(name, precision):
        raise OSError("This model cannot be read.")

    monkeypatch.setattr(inputs, "shared_model", broken)
    monkeypatch.setattr(model_store, "is_loaded", lambda name, precision: False)
    app = open_app(page="all_heads")
    assert "This model cannot be read" in page_text(app) and not skeletons(app)


@pytest.mark.parametrize("page, count", [("word_senses", 1), ("ablation", 0)])
def test_work_beside_the_page_has_grey_shapes_unless_results_stand_there(open_app, monkeypatch, page, count):
    with monkeypatch.context() as patch:
        patch.setattr(jobs.Job, "_work", lambda job: None)
        app = open_app(page=page)
        assert len(skeletons(app)) == count
    app.session_state["_jobs"].clear()
    assert not skeletons(run_until_done(app.run()))


def test_the_first_visit_of_a_server_sees_a_title_before_the_pages_are_imported(open_app, monkeypatch):
    drawn, title = [], first_paint.st.title
    monkeypatch.setattr(first_paint, "_pages_are_imported", lambda: False)
    monkeypatch.setattr(first_paint.st, "title", lambda text, **more: (drawn.append(text), title(text, **more)))
    app = open_app(page="predict")
    assert drawn == ["BERT explorer", "Predict"] and [one.value for one in app.title] == ["Predict"]
    # What stands above the drawing in app.py imports no page.
    before, _, after = (first_paint.ROOT / "app.py").read_text("utf-8").partition("first_paint.draw()")
    imports = [line.strip() for line in before.splitlines() if line.strip().startswith(("import ", "from "))]
    assert imports == ["import streamlit as st", "from ui import first_paint"]
    assert "from ui.session" in after
