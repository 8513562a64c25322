"""Controls agree with what they control, and links and the search lead where they say, in a real Chromium."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from bert_tf.plots import Lines
from tests.browser.page_reading import (
    ASKED,
    PAIR,
    PATIENCE,
    chip,
    open_page,
    parameters,
    point,
    repeat_until,
    share,
    wait_for_link,
)
from tests.browser.test_components import DRAW, FOLDER
from ui.elements.components import lines_data
from ui.shell import catalogue

OTHER = "The people changed the law."


def open_models(page, option):
    """Open the sidebar's list of models until it shows ``option``."""
    picker = page.get_by_test_id("stSidebar").get_by_role("combobox", name=re.compile("Model"))

    def act():
        if not option.is_visible():
            picker.click(timeout=20_000)

    repeat_until(act, lambda patience: expect(option).to_be_visible(timeout=patience))


def choose_model(page, name):
    """Choose another model in the sidebar."""
    option = page.get_by_role("option", name=name)
    open_models(page, option)
    option.click()


def layer_slider(page):
    return page.get_by_role("slider", name="Layer")


def shows_layer(page, layer, heading):
    """Wait until the slider, the heading and the link say the same layer; a link without one means the first."""
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    expect(layer_slider(page)).to_have_value(str(layer))
    page.wait_for_function("(layer) => (new URL(location).searchParams.get('layer') ?? '1') === layer", arg=str(layer))


@pytest.mark.parametrize(
    "name, heading",
    [
        ("all_heads", "Layer {}, head {}"),
        ("neuron", "Layer {}, head {}"),
        ("attention_methods", "after layer {}"),
    ],
)
@pytest.mark.parametrize("layer, head", [(3, 4), (2, 2)])  # beyond the smaller model's, and its last
def test_a_smaller_model_leaves_slider_heading_and_link_equal(visit, name, heading, layer, head):
    page = visit(PAIR + f"&page={name}&layer={layer}&head={head}").page
    shows_layer(page, layer, heading.format(layer, head))
    choose_model(page, "tiny-uncased")
    wait_for_link(page, "model", "tiny-uncased")
    shows_layer(page, 2, heading.format(2, 2))
    wait_for_link(page, "head", "2")
    slider = layer_slider(page)
    repeat_until(
        lambda: slider.press("ArrowLeft"), lambda patience: expect(slider).to_have_value("1", timeout=patience)
    )
    shows_layer(page, 1, heading.format(1, 2))


@pytest.mark.parametrize("at, what, before", [(100, "models", (3, 2)), (100, "texts", (3, 3)), (80, "models", (2, 1))])
def test_a_smaller_model_leaves_the_depth_and_the_maps_equal(visit, at, what, before):
    page = visit(PAIR + f"&page=side_by_side&side_by_side.what={what}&with=tiny-uncased&depth={at}").page
    depth = page.get_by_role("slider", name="Depth")

    def shows(layers, counts):
        expect(depth).to_have_attribute("aria-valuetext", " | ".join(f"layer {layer}" for layer in layers))
        for place, (layer, count) in enumerate(zip(layers, counts)):
            output = page.get_by_text(re.compile(r"layer \d of \d, mean of its heads")).nth(place)
            expect(output).to_contain_text(f"layer {layer} of {count}")

    shows(before, (3, 2 if what == "models" else 3))
    choose_model(page, "tiny-uncased")
    shows((2, 2), (2, 2))
    first = re.compile(r"^layer 1 \|")
    repeat_until(
        lambda: depth.press("ArrowLeft"),
        lambda patience: expect(depth).to_have_attribute("aria-valuetext", first, timeout=patience),
    )
    shows((1, 1), (2, 2))


def shows_text(page, text, word, hidden):
    """Wait until text A is ``text`` in link, field and chips, which have ``word`` and have not ``hidden``."""
    wait_for_link(page, "a", text)
    expect(page.get_by_label("Text A")).to_have_value(text)
    expect(chip(page, word)).to_be_visible()
    expect(chip(page, hidden)).to_have_count(0)


def test_undo_and_redo_of_a_typed_text(visit):
    page = visit(PAIR).page
    shows_text(page, "The bunny ate the carrot.", "ate", "people")
    page.get_by_label("Text A").fill(OTHER)
    page.get_by_label("Text A").press("Enter")
    shows_text(page, OTHER, "people", "ate")
    page.get_by_role("button", name="Undo").click()
    shows_text(page, "The bunny ate the carrot.", "ate", "people")
    page.get_by_role("button", name="Redo").click()
    shows_text(page, OTHER, "people", "ate")


def test_undo_and_redo_of_a_swap(visit):
    page = visit(PAIR).page
    first, second = "The bunny ate the carrot.", "It was good."

    def shows(a, b):
        wait_for_link(page, "a", a)
        wait_for_link(page, "b", b)
        for name, text in (("A", a), ("B", b)):
            expect(page.get_by_label(f"Text {name}")).to_have_value(text)
            words = page.locator(f".chips [data-side={name.lower()}] .line button.chip")
            expect(words.first).to_have_text(text.split()[0])

    shows(first, second)
    page.get_by_role("button", name="Swap").click()
    shows(second, first)
    page.get_by_role("button", name="Undo").click()
    shows(first, second)
    page.get_by_role("button", name="Redo").click()
    shows(second, first)


def test_a_model_to_get_stands_grey_in_the_picker_and_opens_models(visit):
    page = visit(PAIR).page
    page.locator(".lines .left .token").first.wait_for()
    grey, installed = page.get_by_role("option", name="get it"), page.get_by_role("option", name="tiny-uncased")
    open_models(page, grey)
    opacity = "(one) => Number(getComputedStyle(one).opacity)"
    page.wait_for_function(f"(one) => ({opacity})(one) < 0.7", arg=grey.element_handle())
    assert installed.evaluate(opacity) == 1
    grey.click()
    expect(page.get_by_role("heading", level=1, name="Models")).to_be_visible()


def test_a_page_is_found_by_its_title_and_by_its_question(visit):
    page = visit(PAIR).page
    page.locator(".lines .left .token").first.wait_for()
    page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search pages")
    expect(search).to_be_focused()
    first = page.locator(".results a:not(.term)").first
    for one in catalogue.pages().values():
        for typed in (one.title, one.question):
            search.fill(typed)
            expect(first).to_have_text(one.title + one.question)


def test_a_page_opens_with_the_focus_at_its_title(visit):
    page = visit(PAIR).page
    page.locator(".lines .left .token").first.wait_for()

    def opened(title):
        expect(page.get_by_role("heading", level=1, name=title)).to_be_focused()
        expect(page).to_have_title(f"{title} · BERT explorer")

    page.keyboard.press("/")
    page.keyboard.type("neuron")
    expect(page.locator(".results a").first).to_contain_text("Neuron")
    page.keyboard.press("Enter")
    opened("Neuron")
    page.keyboard.press("/")
    page.keyboard.type("predict")
    page.locator(".results a", has_text="Predict").first.focus()
    page.keyboard.press("Enter")
    opened("Predict")
    # Its own button leaves with the page.
    page.get_by_role("button", name="All heads").press("Enter")
    opened("All heads")
    # A link that stays keeps the focus, save on a telephone, where it goes with the sidebar.
    link = page.locator(".sections a", has_text=re.compile("^Neuron$"))
    link.press("Enter")
    expect(page).to_have_title("Neuron · BERT explorer")
    expect(link).to_be_focused()
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_test_id("stExpandSidebarButton").click()
    page.locator(".sections a", has_text="Model view").press("Enter")
    opened("Model view")


def test_going_back_and_forward_quickly_does_not_end_the_visit(visit):
    page = visit(PAIR).page
    app = page.locator(".stApp")
    for pause in (0, 100, 200, 300, 400, 600):
        open_page(page, "Logit lens")
        wait_for_link(page, "page", "logit_lens")
        for act in ("back", "forward", "back"):
            page.wait_for_timeout(pause)
            page.evaluate(f"history.{act}()")
        page.wait_for_timeout(1000)
        expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
        open_page(page, "Predict")
        page.locator(".lines .left .token").first.wait_for()


def test_a_press_that_cannot_reach_the_server_does_not_look_as_if_it_did(visit):
    page = visit(ASKED).page
    app, word, switch = page.locator(".stApp"), chip(page, "The"), page.get_by_role("switch", name="Whole words")
    expect(page.locator(".bars .bar").first).to_be_visible()
    app.evaluate("(app) => { app.dataset.testConnectionState = 'PINGING_SERVER'; }")
    word.click()
    page.locator(".controls label", has_text="Whole words").click()
    assert word.get_attribute("aria-pressed") == "false" and switch.is_checked()
    share = page.locator(".picture button:visible").first
    share.click()
    expect(share).to_be_enabled()
    app.evaluate("(app) => { app.dataset.testConnectionState = 'CONNECTED'; }")
    word.click()
    expect(word).to_have_attribute("aria-pressed", "true")
    wait_for_link(page, "mask", "a0,a3")


def test_going_back_from_the_first_page_leaves_the_explorer(visit):
    page = visit("/").page
    page.locator(".lines .left .token").first.wait_for()
    page.wait_for_function("() => location.search")
    page.evaluate("history.back()")
    page.wait_for_url("about:blank", timeout=20_000)


def test_a_failed_download_says_how_to_bring_the_model_and_goes_with_the_next_change(visit, server_home):
    page = visit(PAIR + "&page=side_by_side").page
    button = page.get_by_role("button", name="Get bert-base-uncased")
    expect(button).to_be_in_viewport()
    button.click()
    message = page.get_by_role("alert").filter(has_text="was not downloaded")
    expect(message).to_contain_text("python -m bert_tf download bert-base-uncased")
    expect(message).to_contain_text(str(server_home))
    expect(message).not_to_contain_text("Errno")
    field = page.get_by_label("Text A")

    def act():
        if not field.is_visible():
            page.get_by_text("Texts and masks").click(timeout=20_000)

    repeat_until(act, lambda patience: expect(field).to_be_visible(timeout=patience))
    field.fill(OTHER)
    field.press("Enter")
    wait_for_link(page, "a", OTHER)
    expect(message).to_have_count(0)


@pytest.mark.parametrize("more", ["", " and the bunny ate the carrot" * 20], ids=["short", "long"])
def test_all_heads_opens_what_predict_shows(visit, more):
    first = f"The bunny ate the carrot{more}."
    page = visit(f"/?a={first.replace(' ', '+')}&b=It+was+good.&mask=a1&layer=2&head=3").page
    page.get_by_test_id("stMain").get_by_role("button", name="All heads").click()
    expect(page.get_by_role("heading", level=1, name="All heads")).to_be_visible()
    wait_for_link(page, "page", "all_heads")
    wanted = {"a": first, "b": "It was good.", "mask": "a1", "layer": "2", "head": "3"}
    actual = parameters(page)
    assert {name: actual.get(name) for name in wanted} == wanted
    expect(page.get_by_role("heading", name="Layer 2, head 3")).to_be_visible()


def test_a_token_that_is_pointed_at_lists_its_strongest_targets(visit, trace):
    page = visit(ASKED + "&page=all_heads&layer=2&head=3").page
    listed, hint = page.locator(".lines .strongest li"), page.locator(".lines .hint")
    expect(listed).to_have_count(8)
    expect(listed.first).to_contain_text("→")
    own = listed.all_inner_texts()
    weights = trace.attentions[1, 2]
    assert [share(text) for text in own] == pytest.approx(np.sort(weights, axis=None)[::-1][:8].tolist(), abs=3e-3)
    point(page, page.locator(".lines .left .token").nth(5), hint, re.compile("looks most at"))
    expect(listed.first).not_to_contain_text("→")
    entries = listed.all_inner_texts()
    assert [share(text) for text in entries] == pytest.approx(np.sort(weights[5])[::-1][:8].tolist(), abs=3e-3)
    for text in entries:
        held = weights[5][[token == text.rsplit(maxsplit=1)[0] for token in trace.tokens]]
        assert np.abs(held - share(text)).min() < 3e-3, text
    page.mouse.move(0, 0)
    expect(listed).to_have_text(own)


def test_a_token_without_weights_is_not_said_to_look_anywhere(chromium):
    tokens = ["[CLS]", "bunny", "[SEP]"]
    sides = ["", "a", ""]
    weights = np.array([[[0, 0, 0], [64, 128, 63], [0, 0, 255]]], np.uint8)
    data = lines_data(Lines(tokens, tokens, sides, sides, weights), "lines", ("",), 0.0, "")
    context = chromium.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.set_content((FOLDER / "lines.html").read_text("utf-8"))
    page.add_style_tag(content=(FOLDER / "lines.css").read_text("utf-8"))
    scripts = [(FOLDER / f"{name}.js").read_text("utf-8") for name in ("shared", "lines")]
    page.add_script_tag(content="\n".join(scripts).replace("export default", "const drawn ="))
    page.evaluate(DRAW, data)
    hint, looking = page.locator(".hint"), page.locator(".left .token")
    looking.nth(0).hover()
    expect(hint).to_have_text("No weight of this token is large enough to be drawn.")
    expect(page.locator(".strongest li")).to_have_count(0)
    expect(page.locator(".wires path")).to_have_count(0)
    looking.nth(1).hover()
    expect(hint).to_have_text(re.compile("“bunny” looks most at “bunny”, 50"))
    context.close()
