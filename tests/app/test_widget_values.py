"""Values given to widgets reach the browser even where one run follows hard upon another."""

import pytest

from tests.app.page_reading import PATIENCE, param

PAIR = {"a": "The bunny ate the carrot.", "b": "It was good."}


def values_of(app):
    return [bool(app.text_area(key=f"w_text_{name}").proto.set_value) for name in "ab"] + [
        bool(app.selectbox(key="w_model").proto.set_value)
    ]


def test_values_go_along_with_a_run_that_the_visitor_did_not_ask_for(open_app):
    app = open_app(**PAIR, model="tiny-uncased")
    assert values_of(app) == [True, True, True]
    for _ in range(2):
        app.session_state["_again"] = True
        assert values_of(app.run()) == [True, True, True]
    assert app.text_area(key="w_text_a").value == PAIR["a"]


OTHERS = {
    "w_second_a": ("text_area", {"page": "side_by_side", "side_by_side.what": "texts"}),
    "w_second_b": ("text_area", {"page": "side_by_side", "side_by_side.what": "texts"}),
    "w_dataset_ask": ("button_group", {"page": "dataset"}),
    "w_ablation_tokens": ("multiselect", {"page": "ablation", "ablation.tokens": "2"}),
    "w_saliency_token": ("selectbox", {"page": "saliency"}),
    "w_counterfactuals_example": ("button_group", {"page": "counterfactuals", "counterfactuals.kind": "pairs"}),
    "w_run": ("selectbox", {"page": "training_curves"}),
}


@pytest.mark.parametrize("key", OTHERS)
def test_values_of_single_pages_go_along_too(open_app, key):
    kind, link = OTHERS[key]
    app = open_app(**PAIR, mask="a1", **link)
    for _ in range(2):
        assert getattr(app, kind)(key=key).proto.set_value
        app.session_state["_again"] = True
        app.run()
    assert not app.exception and not app.error


def test_the_example_of_a_task_goes_along_too(with_tasks, open_app):
    app = open_app(page="task_predictions", a="The cat sat.", **{"task_predictions.model": "classes"})
    app.session_state["_again"] = True
    assert app.run().button_group(key="w_task_example").proto.set_value


def test_a_widget_that_the_last_run_did_not_draw_is_sent_its_value(open_app):
    """A file that replaces another: the run between the two has none, and ends before the choices."""
    app = open_app(**PAIR, page="dataset")

    def is_sent():
        return app.button_group(key="w_dataset_ask").proto.set_value

    # A fragment that runs after the first run sends nothing again.
    assert "w_dataset_ask" in app.session_state["_drawn_before"]
    app.run()
    assert not is_sent()
    app.session_state["_drawn_before"] = set()
    app.run()
    assert is_sent() and app.button_group(key="w_dataset_ask").value
    app.run()
    assert not is_sent()


def go_back(app, params):
    for name in list(app.query_params):
        del app.query_params[name]
    for name, value in params.items():
        app.query_params[name] = value
    return app.run()


def test_going_back_keeps_what_was_typed_on_other_pages(open_app, monkeypatch):
    monkeypatch.setattr("ui.session.state._LATE", 0)
    app = open_app(**PAIR, page="sentence_similarity")
    app.text_area(key="w_sentence_similarity_lines").set_value("One of mine.\nAnother one.").run()
    go_back(app, {**PAIR, "page": "glossary"})
    assert param(app, "sentence_similarity.lines") is None
    view = app.session_state["_view"]
    assert view.page == "glossary" and view.setting("sentence_similarity.lines") == "One of mine.\nAnother one."
    # The settings of the page itself are those of the address.
    go_back(app, {**PAIR, "page": "sentence_similarity", "sentence_similarity.pooling": "max"})
    assert app.text_area(key="w_sentence_similarity_lines").value != "One of mine.\nAnother one."


def test_going_back_keeps_a_text_that_is_too_long_for_a_link(open_app, monkeypatch):
    monkeypatch.setattr("ui.session.state._LATE", 0)
    app, text = open_app(**PAIR, page="glossary"), "The cat sat. " * 400
    go_back(app, {**PAIR, "page": "predict"})
    app.text_area(key="w_text_a").set_value(text).run()
    assert param(app, "a") == ""
    address = {name: param(app, name) for name in app.query_params}
    go_back(app, {**PAIR, "page": "glossary"})
    go_back(app, address)
    assert app.text_area(key="w_text_a").value == text


def test_what_a_visitor_types_is_left_alone(open_app, monkeypatch):
    monkeypatch.setattr("ui.session.state._UNDER_WAY", 0)
    app = open_app(**PAIR)
    app.text_area(key="w_text_a").set_value("It was good.").run()
    assert values_of(app) == [False, False, False]
    app.session_state["_again"] = True
    assert values_of(app.run()) == [False, False, False]
    assert app.text_area(key="w_text_a").value == "It was good."


@pytest.mark.parametrize("soon", [True, False])
def test_a_slider_that_is_moved_while_a_value_is_under_way_is_sent_its_own(open_app, monkeypatch, soon):
    monkeypatch.setattr("ui.session.state._UNDER_WAY", 600 if soon else 0)
    link = {"page": "side_by_side", "with": "tiny-uncased", "depth": "80"}
    app = open_app(**PAIR, **link)
    app.selectbox(key="w_model").set_value("tiny-uncased").run()
    assert app.select_slider(key="w_depth").proto.set_value
    for chosen in (0, 1):
        app.select_slider(key="w_depth").set_value(chosen).run()
        assert app.select_slider(key="w_depth").proto.set_value is soon
        assert app.select_slider(key="w_depth").value == chosen


@pytest.mark.parametrize("ended, left", [(True, ""), (False, PAIR["a"])])
def test_a_field_that_a_cut_run_left_empty_does_not_lose_the_text(open_app, ended, left):
    app = open_app(**PAIR)
    app.session_state["_ended"] = ended
    app.text_area(key="w_text_a").set_value("").run()
    assert app.text_area(key="w_text_a").value == left and (param(app, "a") or "") == left
    app.text_area(key="w_text_a").set_value("It rained.").run()
    assert param(app, "a") == "It rained."


@pytest.mark.parametrize("ended, left", [(True, ""), (False, "river")])
def test_nor_does_a_field_of_a_page_s_own(open_app, ended, left):
    typed = {
        "word_senses.example": "own sentences",
        "word_senses.word": "river",
        "word_senses.lines": "The river rose.\nA river.",
    }
    app = open_app(page="word_senses", **typed)
    app.session_state["_ended"] = ended
    app.text_input(key="w_word_senses_word").set_value("").run()
    assert app.text_input(key="w_word_senses_word").value == left


def _page_that_can_be_cut_short():
    import streamlit as st

    from ui.session import state

    state.open_view()
    st.button("Go", key="go", on_click=lambda: state.change_view(page="logit_lens"))
    st.button("Theme", key="theme", on_click=state.keep_view_next_run)
    st.text(state.view().page)
    if st.session_state.get("cut"):
        st.stop()
    state.write_address()


@pytest.fixture
def cut_app():
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_function(_page_that_can_be_cut_short, default_timeout=PATIENCE)
    app.query_params["a"] = PAIR["a"]
    return app


def test_a_press_is_not_lost_where_its_run_is_cut_short(cut_app):
    cut_app.session_state["cut"] = True
    cut_app.run()
    cut_app.button(key="go").click().run()
    cut_app.session_state["cut"] = False
    assert cut_app.run().text[0].value == "logit_lens" and param(cut_app, "page") == "logit_lens"


def test_a_press_is_not_lost_where_another_theme_is_told_with_the_address_of_before(cut_app):
    cut_app.run()
    cut_app.button(key="go").click().run()
    assert param(cut_app, "page") == "logit_lens"
    del cut_app.query_params["page"]
    assert cut_app.button(key="theme").click().run().text[0].value == "logit_lens"
    # Another link is still taken.
    cut_app.query_params["page"] = "all_heads"
    assert cut_app.run().text[0].value == "all_heads"


@pytest.mark.parametrize("seconds, page", [(60.0, "logit_lens"), (0.0, "predict")])
def test_an_address_replaced_a_moment_ago_is_no_link_and_later_it_is(cut_app, monkeypatch, seconds, page):
    """A run that no callback announced, with the address of before: too soon for the visitor's Back button, or that."""
    from ui.session import state

    monkeypatch.setattr(state, "_LATE", seconds)
    cut_app.run()
    before = dict(cut_app.query_params)
    cut_app.button(key="go").click().run()
    cut_app.query_params = before
    cut_app.run()
    assert cut_app.text[0].value == page
    # The browser was sent the new address already: sent again, it would undo the step back that nav.js tells next.
    assert dict(cut_app.query_params) == before


def test_two_fields_that_are_empty_at_once_were_never_filled(open_app):
    """A visitor clears one after the other; a browser that was too slow to fill them reports both."""
    app = open_app(**PAIR)
    for name in "ab":
        app.text_area(key=f"w_text_{name}").set_value("")
    app.run()
    assert [app.text_area(key=f"w_text_{name}").value for name in "ab"] == list(PAIR.values())
    for name in "ba":
        app.text_area(key=f"w_text_{name}").set_value("").run()
    assert [app.text_area(key=f"w_text_{name}").value for name in "ab"] == ["", ""]


def test_what_was_given_in_a_run_that_was_cut_short_goes_along_with_the_next(open_app):
    app = open_app(**PAIR)
    app.session_state["_ended"] = False
    assert values_of(app.run()) == [True, True, True]
    assert values_of(app.run()) == [False, False, False]
