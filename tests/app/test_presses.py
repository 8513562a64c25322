"""What a visitor presses while the server computes, as the browser sends it."""

import json

import pytest

from tests.app.page_reading import component, component_protos, param, press


@pytest.fixture
def page(open_app):
    return open_app(page="predict", a="The cat sat on the mat.")


def chips_of(app):
    return component_protos(app, "chips")[0]


def masked(app):
    return [chip["was"] for chip in component(app, "chips")["chips"] if chip["masked"]]


def test_all_presses_of_a_message_are_taken_in_their_order_and_each_once(page):
    press(page, chips_of(page), [10, "toggle", "a4"])  # something to undo: the button is enabled
    first = [[11, "toggle", "a0"], [12, "toggle", "a1"], [13, "use", {"name": "undo", "value": None}]]
    press(page, chips_of(page), *first)
    assert masked(page) == ["The", "the"] and json.loads(chips_of(page).json)["answered"] == 13
    # The browser has not had the answer yet: it sends them again with the next one.
    press(page, chips_of(page), *first, [14, "toggle", "a2"])
    assert masked(page) == ["The", "sat", "the"] and json.loads(chips_of(page).json)["answered"] == 14


def test_presses_of_a_session_that_is_lost_are_not_taken(page):
    press(page, chips_of(page), [11, "toggle", "a0"], [12, "toggle", "a1"], session="another")
    assert masked(page) == ["cat"]


def test_a_press_that_is_refused_is_drawn_anew(page):
    press(page, chips_of(page), *([number, "toggle", f"a{number - 1}"] for number in range(1, 7)))
    before = chips_of(page).json
    assert len(masked(page)) == 6  # the most here
    press(page, chips_of(page), [7, "toggle", "a6"])
    assert len(masked(page)) == 6 and "unmask one first" in page.toast[0].value
    assert chips_of(page).json != before  # the browser has painted the word: it draws only data that are not equal


def test_a_prediction_is_not_written_into_a_text_that_another_one_has_changed(open_app):
    app = open_app(page="predict", a="The cat sat on the mat.", mask="a1,a2")
    cards = component(app, "bars")["cards"]
    fills = [{"position": card["position"], "token": card["predictions"][0]["id"]} for card in cards]
    (bars,) = component_protos(app, "bars")
    press(app, bars, [1, "fill", fills[0]], [2, "fill", fills[0]], [3, "fill", fills[1]])
    assert param(app, "mask") == "a2" and param(app, "a").endswith(" sat on the mat.")
    assert [card["position"] for card in component(app, "bars")["cards"]] == [fills[1]["position"]]


def test_heads_that_are_taken_away_together_are_all_gone(open_app):
    more = {"all_heads.several": "1", "all_heads.more": "1.1,2.2"}
    app = open_app(page="all_heads", a="The cat sat on the mat.", layer="2", head="1", **more)
    (heads,) = component_protos(app, "heads")
    first, second, third = [[one["layer"], one["head"]] for one in component(app, "heads")["heads"]]
    dropped = [{"layer": layer, "head": head} for layer, head in (first, second)]
    press(app, heads, [1, "drop", dropped[0]], [2, "drop", dropped[1]])
    assert [[one["layer"], one["head"]] for one in component(app, "heads")["heads"]] == [third]


@pytest.mark.parametrize(
    "wrong",
    [
        "a0",
        [1, "toggle"],
        [True, "toggle", "a0"],
        [1.5, "toggle", "a0"],
        [0, "toggle", "a0"],
        [2**60, "toggle", "a0"],
        [1, ["toggle"], "a0"],
        [1, "toggle", ["a0"]],
        [1, "toggle", "x"],
        [1, "run", "a0"],
        [1, "use", {"name": ["undo"]}],
    ],
)
def test_what_no_component_of_a_page_sends_is_ignored(page, wrong):
    press(page, chips_of(page), wrong)
    assert not page.exception and not masked(page)
    press(page, chips_of(page), wrong, [2, "toggle", "a1"])
    assert not page.exception and masked(page) == ["cat"]


@pytest.mark.parametrize("value", [None, [], "x", {}, {"presses": 3}, {"presses": {}, "session": 1}])
def test_a_message_of_another_shape_is_ignored(page, value):
    press(page, chips_of(page), value=value)
    assert not page.exception and not masked(page)
