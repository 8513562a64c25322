"""Values given to widgets reach the browser even where one run follows hard upon another."""

PAIR = {"a": "The bunny ate the carrot.", "b": "It was good."}


def given(app):
    return [bool(app.text_area(key=f"w_text_{name}").proto.set_value) for name in "ab"] + [
        bool(app.selectbox(key="w_model").proto.set_value)
    ]


def test_values_go_along_with_a_run_that_the_visitor_did_not_ask_for(open_app):
    app = open_app(**PAIR, model="tiny-uncased")
    assert given(app) == [True, True, True]
    for _ in range(2):
        app.session_state["_again"] = True
        assert given(app.run()) == [True, True, True]
    assert app.text_area(key="w_text_a").value == PAIR["a"]


def test_what_a_visitor_types_is_left_alone(open_app):
    app = open_app(**PAIR)
    app.text_area(key="w_text_a").set_value("It was good.").run()
    assert given(app) == [False, False, False]
    app.session_state["_again"] = True
    assert given(app.run()) == [False, False, False]
    assert app.text_area(key="w_text_a").value == "It was good."
