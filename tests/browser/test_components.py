"""What the explorer's own components have in common, run in a real Chromium."""

import re

import numpy as np
import pytest

from bert_tf.plots.numbers import percent
from ui.shell.limits import ROOT
from ui.widgets.formatting import direction, isolated

FOLDER = ROOT / "assets" / "components"
SCRIPTS = sorted(FOLDER.glob("*.js"))


@pytest.fixture
def blank(chromium):
    """A function that opens an empty page with the scripts of the components of these names in it."""
    context = chromium.new_context()

    def open_components(*names):
        page = context.new_page()
        page.set_default_timeout(120_000)
        scripts = [(FOLDER / f"{name}.js").read_text("utf-8") for name in ("shared", *names)]
        page.set_content((FOLDER / f"{names[-1]}.html").read_text("utf-8"))
        for name in names:
            page.add_style_tag(content=(FOLDER / f"{name}.css").read_text("utf-8"))
        page.add_script_tag(content="\n".join(scripts).replace("export default", "const drawn ="))
        return page

    yield open_components
    context.close()


def test_no_two_components_hold_the_same_function():
    results = {}
    for path in SCRIPTS:
        for name, body in re.findall(r"^(?:export )?function (\w+)(\(.*?\n})", path.read_text("utf-8"), re.M | re.S):
            assert body not in results, (name, path.name, results[body])
            results[body] = path.name


def test_a_share_is_written_by_the_components_as_the_pages_write_it(blank):
    shares = [0.0, 1e-9, 0.0009, 0.0011, 0.0123, 0.0999, 0.1, 0.4611, 0.9949, 0.9994, 0.9996, 1.0]
    for name in ("bars", "lines", "neuron", "gauge"):
        assert blank(name).evaluate("(shares) => shares.map(percent)", shares) == [percent(one) for one in shares]


def test_the_softmax_of_a_pair_is_an_equation_or_a_bound(blank):
    page = blank("neuron")
    assert page.evaluate("[0, 0.25, 1].map(relation)") == ["< 0.1%", "= 25.0%", "> 99.9%"]


def test_a_token_that_the_query_may_not_read_has_neither_score_nor_weight(blank):
    page = blank("neuron")
    assert page.evaluate("[scoreOf(-1.5), weightOf(-1.5, 0.25)]") == ["−1.50", "25.0%"]
    assert page.evaluate("[scoreOf(null), weightOf(null, 0)]") == ["—", "not read"]


def test_what_is_rounded_to_zero_has_no_minus(blank):
    page = blank("weights")
    assert page.evaluate("[-0.004, -0.006, 0, 1.25, -12].map((value) => signed(value))") == [
        *("0.00", "−0.01", "0.00", "1.25", "−12.00")
    ]
    assert page.evaluate("[-0.0004, -0.0006, 0, 0.5, null].map(written)") == ["0.0%", "−0.1%", "0.0%", "50.0%", ""]


@pytest.mark.parametrize(
    "share, order, verdict",
    [
        (0.499, False, "Undecided"),
        (0.59, True, "Undecided"),
        (0.41, False, "Undecided"),
        (0.61, False, "B follows A"),
        (0.39, False, "B does not follow A"),
        (0.1, True, "Swapped"),
    ],
)
def test_the_gauge_gives_no_verdict_near_one_half(blank, share, order, verdict):
    page = blank("gauge")
    page.evaluate("(data) => drawn({ parentElement: document.body, data })", {"is_next": share, "order": order})
    assert page.locator(".verdict").inner_text() == verdict


def test_data_that_come_too_late_are_not_drawn(blank):
    page = blank("gauge")
    place = "(data) => { drawn({ parentElement: document.body, data }); return document.body.innerText; }"
    first, second = ({"is_next": share, "order": False, "made": made} for share, made in ((0.111, 1), (0.888, 2)))
    assert "11.1%" in page.evaluate(place, first)
    assert "88.8%" in page.evaluate(place, second)
    assert "88.8%" in page.evaluate(place, first)
    assert "11.1%" in page.evaluate(place, first | {"made": 3})


def test_a_drawing_that_comes_too_late_ends_only_itself(blank):
    page = blank("gauge")
    page.evaluate(
        """() => {
            window.ended = [];
            window.place = document.body.appendChild(make("div", ""));
            const draw = inOrder(({ data }) => () => window.ended.push(data.made));
            window.end = (made) => draw({ parentElement: window.place, data: { made } });
        }"""
    )
    assert page.evaluate("end(2); end(1)(); window.ended") == []
    assert page.evaluate("window.last = end(3); window.ended") == [2]
    assert page.evaluate("window.place.remove(); window.last(); window.ended") == [2, 3]


def test_the_frame_of_the_small_maps_follows_a_press_that_is_sent_and_what_a_saved_page_draws_meanwhile(blank):
    frames = """(sent) => {
        draw = () => {};
        const state = { heads: ["before"], several: false };
        state.send = () => { if (sent === "saved page") state.heads = ["drawn"]; return Boolean(sent); };
        open(state, "pressed");
        return state.heads;
    }"""
    page = blank("grid")
    assert page.evaluate(frames, "server") == ["pressed"] and page.evaluate(frames, "") == ["before"]
    assert page.evaluate(frames, "saved page") == ["drawn"]


def test_numbers_above_narrow_tiles_do_not_run_together(blank):
    page = blank("grid")
    numbered = lambda *values: page.evaluate("(values) => numbered(...values)", values)  # noqa: E731
    assert numbered(12, 20, [7]) == list(range(12)) and numbered(8, 10, []) == list(range(8))
    assert numbered(12, 10, []) == [0, 2, 4, 6, 8, 10]
    assert numbered(12, 10, [7]) == [0, 2, 4, 7, 10]
    assert numbered(16, 6, []) == [0, 3, 6, 9, 12, 15]


def test_the_grid_has_the_ramps_colours(blank):
    ramp = ["#ffffff", "#0072b2", "#102030"]
    packed = np.array(blank("grid").evaluate("(ramp) => [...colours(ramp)]", ramp), np.uint32)
    stops = np.array([[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in ramp])
    wanted = [np.interp(np.linspace(0, 1, 256), [0, 0.5, 1], stops[:, c]) for c in range(3)]
    actual = packed.view(np.uint8).reshape(256, 4)  # red, green, blue, opacity as the canvas has them
    assert (actual[:, 3] == 255).all() and np.abs(actual[:, :3] - np.stack(wanted, 1)).max() <= 0.5 + 1e-9


ENGLISH = "The cat sat on the mat"
HEBREW = "החתול ישב על השטיח, COVID"
ARABIC = "جلست القطة على السجادة"
DRAW = "(data) => drawn({ parentElement: document.body, data, setTriggerValue: () => {} })"
SEND = """(data) => drawn({ parentElement: document.body, data,
    setTriggerValue: (name, value) => { window.sent = value; } })"""
PLACES = "(words) => words.map((word) => { const box = word.getBoundingClientRect(); return [box.left, box.right]; })"


def chip(position, side, text):
    return {
        "position": position,
        "side": side,
        "text": text,
        "was": text,
        "spot": f"{side}{position}",
        "masked": False,
        "kind": "piece" if text.startswith("##") else "word",
    }


def runs_from(places, side):
    """Whether boxes follow each other in one line, each beginning where or after the one before ends."""
    ends = [(left, right) if side == "ltr" else (-right, -left) for left, right in places]
    return all(before[1] <= after[0] + 0.5 for before, after in zip(ends, ends[1:]))


def test_the_components_keep_apart_what_the_pages_keep_apart(blank):
    words = [
        *ENGLISH.split(),
        *HEBREW.split(),
        *ARABIC.split(),
        "ܐ",
        "ߊ",
        "ﬡ",
        "ﻼ",
        "𐤀",
        "𞤀",
        "é",
        "中",
        "12",
        "[MASK]",
    ]
    page = blank("lines")
    assert page.evaluate("(words) => words.map(isolated)", words) == [isolated(word) for word in words]


@pytest.mark.parametrize("a, b", [(ENGLISH, HEBREW), (HEBREW, ENGLISH), (ARABIC, HEBREW), (ENGLISH, "")])
def test_chips_stand_in_the_order_in_which_their_text_is_read(blank, a, b):
    page = blank("controls", "chips")
    words = [(side, word) for side, text in (("a", a), ("b", b)) for word in text.split()]
    chips = [chip(at, side, word) for at, (side, word) in enumerate(words)]
    page.evaluate(DRAW, {"chips": chips, "controls": [], "directions": {"a": direction(a), "b": direction(b)}})
    for side, text in (("a", a), ("b", b)):
        line = page.locator(f"[data-side={side}] .line button")
        assert line.all_inner_texts() == text.split()
        if not text:
            continue
        assert runs_from(line.evaluate_all(PLACES), direction(text))
        assert direction(text) == ("ltr" if text == ENGLISH else "rtl")
        # The arrow that points to the second word leads to it.
        line.first.focus()
        page.keyboard.press("ArrowRight" if text == ENGLISH else "ArrowLeft")
        assert page.evaluate("document.activeElement.textContent") == text.split()[1]
        page.keyboard.press("ArrowLeft" if text == ENGLISH else "ArrowRight")
        assert page.evaluate("document.activeElement.textContent") == text.split()[0]


def test_pieces_of_a_word_join_on_the_side_where_it_goes_on(blank):
    page = blank("controls", "chips")
    chips = [chip(0, "a", "של"), chip(1, "a", "##ום"), chip(2, "b", "un"), chip(3, "b", "##fair")]
    page.evaluate(DRAW, {"chips": chips, "controls": [], "directions": {"a": "rtl", "b": "ltr"}})
    look = "(one) => { const style = getComputedStyle(one); return [style.borderLeftStyle, style.borderRightStyle]; }"
    styles = [page.locator("button").nth(at).evaluate(look) for at in (1, 3)]
    assert [style.index("dashed") for style in styles] == [1, 0]
    # No gap between the pieces of one word.
    (left, _), (_, right) = page.locator("[data-side=a] button").evaluate_all(PLACES)
    assert abs(left - right) < 0.5


def test_a_masked_word_is_struck_through_and_moves_no_other_chip(blank):
    page = blank("controls", "chips")
    chips = [chip(0, "a", "של"), chip(1, "a", "carrot"), chip(2, "b", "cat"), chip(3, "b", "sat")]
    places = []
    for masked in (False, True):
        strip = [{**one, "masked": masked and one["position"] in (0, 2)} for one in chips]
        page.evaluate(DRAW, {"chips": strip, "controls": [], "directions": {"a": "rtl", "b": "ltr"}})
        places.append(np.array(page.locator("button").evaluate_all(PLACES)))
    np.testing.assert_allclose(*places, atol=0.5)
    assert page.locator(".was").all_inner_texts() == ["של", "cat"]
    look = "(one) => getComputedStyle(one).textDecorationLine"
    assert page.locator(".was").first.evaluate(look) == "line-through"


def sent(page):
    """The presses in the last message of a component that `SEND` drew, without their numbers."""
    return [press[1:] for press in page.evaluate("window.sent.presses")]


def test_presses_are_sent_until_they_are_answered_and_to_no_other_session(blank):
    page = blank("controls", "chips")
    chips = [chip(at, "a", word) for at, word in enumerate(ENGLISH.split())]
    data = {"chips": chips, "controls": [], "directions": {"a": "ltr", "b": "ltr"}, "session": "one", "answered": 0}
    page.evaluate(SEND, data)
    for at in (0, 1):
        page.locator("button").nth(at).click()
    assert sent(page) == [["toggle", "a0"], ["toggle", "a1"]]
    first, second = (press[0] for press in page.evaluate("window.sent.presses"))
    assert 0 < first < second and page.evaluate("window.sent.session") == "one"
    page.evaluate(SEND, {**data, "answered": first})
    page.locator("button").nth(2).click()
    assert sent(page) == [["toggle", "a1"], ["toggle", "a2"]]
    page.evaluate(SEND, {**data, "session": "two"})
    page.locator("button").nth(3).click()
    assert sent(page) == [["toggle", "a3"]]
    assert page.evaluate("window.sent.presses")[0][0] > second


def test_a_component_sends_no_more_presses_than_the_server_takes(blank):
    from ui.elements import component_registry

    page = blank("grid")
    assert page.evaluate("MOST_SENT") == component_registry._MOST_SENT


def test_a_toolbar_sends_what_a_visitor_does_and_shows_what_the_server_says(blank):
    page = blank("controls", "toolbar")
    button = {"kind": "button", "name": "undo", "label": "Undo", "icon": "undo", "help": "", "disabled": False}
    menu = {"kind": "choice", "name": "layer", "label": "Layer", "options": ["Layer 1", "Layer 2"], "chosen": 0}
    switch = {"kind": "switch", "name": "whole", "label": "Whole words", "on": True, "help": ""}
    data = {"heading": "Attention", "controls": [{**button, "bare": True}, {**menu, "help": ""}, switch]}
    page.evaluate(SEND, data)
    assert page.get_by_role("heading", level=2).inner_text() == "Attention"
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("combobox", name="Layer").select_option("Layer 2")
    page.get_by_role("switch", name="Whole words").click()
    assert sent(page) == [
        ["use", {"name": name, "value": value}] for name, value in (("undo", None), ("layer", 1), ("whole", False))
    ]
    # The server has refused both: the controls show its values again, and a button may be disabled now.
    page.evaluate(
        SEND, {**data, "controls": [{**button, "bare": True, "disabled": True}, {**menu, "help": ""}, switch]}
    )
    assert page.get_by_role("combobox").input_value() == "Layer 1" and page.get_by_role("switch").is_checked()
    assert page.get_by_role("button", name="Undo").is_disabled()


def test_quick_presses_go_on_from_layer_to_layer(blank):
    page = blank("tower")
    names = ("embeddings", "attention", "attention_norm", "feed_forward", "feed_forward_norm")
    boxes = [{"name": name, "title": name, "size": "", "shape": "", "work": "", "share": 0} for name in names]
    data = {"boxes": boxes, "heads": [], "tokens": ["a"], "direction": "ltr", "chosen": "attention"}
    page.evaluate(SEND, {**data, "layer": 0, "layers": 3})
    onward = page.get_by_role("button", name="Next layer")
    onward.click()
    onward.click()
    assert sent(page) == [["layer", 1], ["layer", 2]]
    assert page.locator(".top b").inner_text() == "Encoder layer 3 of 3" and onward.is_disabled()
    page.evaluate(SEND, {**data, "layer": 1, "layers": 3})
    assert page.locator(".top b").inner_text() == "Encoder layer 2 of 3" and onward.is_enabled()


def test_a_typed_text_runs_as_its_first_letter_does(blank):
    page = blank("controls", "chips")
    page.set_content(f'<div class="stMainBlockContainer"><textarea>{HEBREW}</textarea></div>')
    page.add_style_tag(path=ROOT / "assets" / "style.css")
    assert page.locator("textarea").evaluate("(field) => getComputedStyle(field).unicodeBidi") == "plaintext"


def test_the_end_of_an_input_method_s_word_applies_nothing_and_results_are_not_left_dimmed(blank):
    page = blank("typing")
    page.set_content('<div class="stMainBlockContainer st-key-text"><textarea aria-label="Text"></textarea></div>')
    # A page without an address has no storage.
    page.evaluate("Object.defineProperty(window, 'sessionStorage', { value: { getItem: () => null, setItem() {} } })")
    page.evaluate("(data) => { window.end = drawn({ parentElement: make('div', ''), data }); }", {"keys": ["text"]})
    field, main = page.locator("textarea"), page.locator(".stMainBlockContainer")
    press = """(field, keyCode) => field.dispatchEvent(
        new KeyboardEvent("keydown", { key: "Enter", keyCode, bubbles: true, cancelable: true }))"""
    field.focus()
    # Whether the default of Enter, a new line or the end of a word, is left to the browser.
    assert field.evaluate(press, 229) and not field.evaluate(press, 13)
    page.keyboard.type("a")
    assert main.get_attribute("data-typing") == ""
    page.evaluate("window.end()")
    assert main.get_attribute("data-typing") is None


def test_the_words_of_a_button_and_the_columns_of_readers_have_room(blank):
    page = blank("controls", "chips")
    page.set_viewport_size({"width": 1024, "height": 768})
    column = '<div class="stColumn"><div class="stVerticalBlock">{}</div></div>'
    texts = ("<p>Short.</p>", f"<p>{'Long. ' * 60}</p>")
    columns = "".join(column.format(f"<b>Name</b>{text}<i>Bars</i>") for text in texts * 2)
    page.set_content(
        "<style>.stHorizontalBlock { display: flex; gap: 2rem; } .stColumn { flex: 1 1 0; }"
        " .stMarkdownEllipsis { overflow: hidden; white-space: nowrap; }</style>"
        '<div class="stMainBlockContainer"><button style="width: 100px"><div class="stMarkdownEllipsis">'
        "Attention is not explanation</div></button>"
        '<div class="st-key-readers" style="width: 644px"><div data-testid="stLayoutWrapper">'
        f'<div class="stHorizontalBlock">{columns}</div></div></div></div>'
    )
    words = page.locator(".stMarkdownEllipsis")
    assert words.evaluate("(text) => text.scrollWidth > text.clientWidth")
    page.add_style_tag(path=ROOT / "assets" / "style.css")
    assert words.evaluate("(text) => text.scrollWidth <= text.clientWidth")
    bars = [bar.bounding_box() for bar in page.locator("i").all()]
    assert bars[0]["y"] == bars[1]["y"] < bars[2]["y"] == bars[3]["y"] and bars[0]["x"] == bars[2]["x"]


def test_the_question_of_a_page_ends_before_its_links_with_wider_letters_too(blank):
    page = blank("controls", "chips")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.set_content(
        "<style>* { letter-spacing: .12em; } div { display: flex; }</style>"
        '<div class="stMainBlockContainer" style="width: 60rem"><div class="st-key-page_title"><h1>Predict</h1><p>'
        f'{"What does it expect? " * 5}</p></div><div data-testid="stLayoutWrapper"><div class="st-key-page_links">'
        '<button style="width: 17rem">Link</button></div></div></div>'
    )
    page.add_style_tag(path=ROOT / "assets" / "style.css")
    question, links = (page.locator(name).bounding_box() for name in (".st-key-page_title p", ".st-key-page_links"))
    assert question["x"] + question["width"] <= links["x"]


def test_a_cell_that_is_pointed_at_is_told_anew_when_the_table_is(blank):
    page, hint = blank("cells"), "Point at a cell."
    data = {
        "label": "",
        "corner": "",
        "rows": ["1", "2"],
        "columns": ["1", "2"],
        "tips": ["a", "b", "c", "d"],
        "hint": hint,
        "ramp": ["#ffffff", "#000000"],
        "shades": None,
        "texts": None,
        "edges": None,
        "off": [False] * 4,
        "picked": None,
        "strong": [],
        "breaks": [],
        "legend": None,
        "still": False,
    }
    page.evaluate(DRAW, data)
    assert page.locator(".hint").inner_text() == hint
    page.locator("td[data-at]").nth(2).hover()
    assert page.locator(".hint").inner_text() == "c"
    page.evaluate(DRAW, {**data, "tips": ["A", "B", "C", "D"]})
    assert page.locator(".hint").inner_text() == "C"
    page.locator("td[data-at]").nth(0).focus()
    page.evaluate(DRAW, data)
    assert page.locator(".hint").inner_text() == "a"  # the focus leads, as where it moves


@pytest.mark.parametrize("touch", [False, True])
@pytest.mark.parametrize("blocks", [["FF"], ["FF", "layer"]])
def test_twelve_heads_and_their_blocks_fit_a_telephone(chromium, blocks, touch):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=touch, is_mobile=touch)
    page = context.new_page()
    columns = [*map(str, range(1, 13)), *blocks]
    count = 12 * len(columns)
    page.set_content(
        '<meta name="viewport" content="width=device-width"><body style="margin: 0 16px">'
        + (FOLDER / "cells.html").read_text("utf-8")
    )
    page.add_style_tag(content="body { font-family: sans-serif; }" + (FOLDER / "cells.css").read_text("utf-8"))
    scripts = [(FOLDER / f"{name}.js").read_text("utf-8") for name in ("shared", "cells")]
    page.add_script_tag(content="\n".join(scripts).replace("export default", "const drawn ="))
    page.evaluate(
        DRAW,
        {
            "label": "",
            "corner": "layer",
            "rows": columns[:12],
            "columns": columns,
            "tips": ["x"] * count,
            "hint": "",
            "ramp": ["#ffffff", "#000000"],
            "shades": [0.5] * count,
            "texts": None,
            "edges": None,
            "off": [False] * count if "layer" in blocks else None,
            "picked": None if "layer" in blocks else 3,
            "strong": [],
            "breaks": list(range(12, len(columns))),
            "legend": None,
            "still": False,
        },
    )
    inside = page.locator(".scroll").evaluate("(box) => [box.scrollWidth, box.clientWidth]")
    widths = page.locator("td[data-at]").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().width)")
    coarse = page.evaluate("matchMedia('(pointer: coarse)').matches")
    context.close()
    assert coarse == touch and inside == [358, 358] and min(widths) >= 20, (coarse, inside, min(widths))


@pytest.mark.parametrize("name", ["marks", "spans"])
def test_words_on_colours_stand_in_the_order_in_which_they_are_read(blank, name):
    for text in (ENGLISH, HEBREW):
        page, runs = blank(name), direction(text)
        words = [{"text": word, "tip": word, "shade": 0.5, "kind": 0, "label": ""} for word in text.split()]
        parts = [part for word in words for part in (word, {"text": " "})]
        page.evaluate(
            DRAW,
            {
                "a": parts,
                "b": None,
                "directions": {"a": runs, "b": "ltr"},
                "ramp": ["#ffffff", "#000000"],
                "legend": ["low", "high"] if name == "marks" else [],
                "hint": "",
                "parts": parts,
                "direction": runs,
                "colours": ["#0072b2"],
            },
        )
        places = page.locator("button").evaluate_all(PLACES)
        assert len(places) == len(words) and runs_from(places, runs)
        page.locator("button").first.focus()
        page.keyboard.press("ArrowRight" if runs == "ltr" else "ArrowLeft")
        assert page.evaluate("document.activeElement.textContent") == text.split()[1]


def test_labelled_places_have_the_colours_of_their_legend(blank):
    page, labels = blank("spans"), ("place", "person")
    parts = [
        {"text": word, "tip": word, "kind": kind, "label": labels[kind]}
        for word, kind in (("Paris", 0), ("Anna", 1), ("Rome", 0))
    ]
    page.evaluate(
        DRAW,
        {
            "parts": parts,
            "legend": [{"label": label, "note": " 1", "kind": kind} for kind, label in enumerate(labels)],
            "hint": "",
            "direction": "ltr",
            "colours": ["#0072b2", "#d55e00"],
        },
    )
    edge = "(all) => all.map((one) => getComputedStyle(one).borderBottomColor)"
    place, person, other = page.locator(".span").evaluate_all(edge)
    assert place == other == "rgb(0, 114, 178)" and person == "rgb(213, 94, 0)"
    assert page.locator(".legend i").evaluate_all(edge) == [place, person]
    fills = page.locator(".span").evaluate_all("(all) => all.map((one) => getComputedStyle(one).backgroundColor)")
    assert fills[0] == fills[2] != fills[1]


def test_a_share_is_whole_in_a_narrow_card(blank):
    page = blank("bars")
    page.evaluate(
        """() => document.body.insertAdjacentHTML("beforeend", `<div class="bars" style="width: 136px">
        <div class="card"><div class="bar"><span class="word">university</span><span class="share">15.3%</span></div>
        </div></div>`)"""
    )
    right = "(one) => one.getBoundingClientRect().right"
    assert page.locator(".share").last.evaluate(right) <= page.locator(".bar").last.evaluate(right)


def test_twelve_heads_and_the_blocks_fit_beside_a_figure(blank):
    page = blank("cells")
    page.set_viewport_size({"width": 1024, "height": 768})
    page.evaluate(
        """() => { const row = (cell) => `<tr><th>12</th>${cell.repeat(12)}<td class="gap"></td>${cell}</tr>`;
        document.body.insertAdjacentHTML("beforeend", `<div class="cells" style="--columns: 13; width: 318px">
        <div class="scroll"><table>${row('<td data-at="0"></td>')}</table></div></div>`); }"""
    )
    assert page.locator(".scroll").last.evaluate("(scroll) => scroll.scrollWidth <= scroll.clientWidth")
