"""What a visitor does, in a real Chromium."""

import re
import urllib.parse

from playwright.sync_api import expect

from tests.browser.page_reading import (
    PAIR,
    chip,
    open_page,
    parameters,
    point,
    press_head,
    repeat_until,
    saved,
    saved_file,
    settled,
    wait_for_link,
)


def test_from_a_typed_pair_to_a_reopened_link(visit):
    """The long way: type a pair, hide a word, read, fill in, open a head, compare, reload."""
    page = visit().page
    page.locator(".bars .bar").first.wait_for()
    page.get_by_label("Text A").fill("The people changed the law.")
    page.get_by_label("Text B").fill("The house was good.")
    page.get_by_label("Text B").press("Tab")
    expect(chip(page, "house")).to_be_visible()
    expect(page.locator("button.chip[aria-pressed=true]")).to_have_count(0)
    expect(page.locator(".gauge .left")).to_have_text(re.compile(r"IsNext \d+\.\d%"))

    chip(page, "law").click()
    expect(page.locator(".card .title")).to_have_text(["law"])
    expect(page.locator(".card .word")).to_have_count(5)
    expect(page.locator(".card .share").first).to_have_text(re.compile(r"\d\.\d%"))
    wait_for_link(page, "mask", "a4")

    open_page(page, "All heads")
    # The canvas can still move while the page is drawn.
    heading = page.get_by_role("heading", name="Layer 2, head 3")
    repeat_until(lambda: press_head(page, 2, 3), lambda patience: expect(heading).to_be_visible(timeout=patience))
    expect(page.locator(".lines .left .token")).to_have_count(14)
    token = page.locator(".lines .left .token", has_text="people")
    point(page, token, page.locator(".lines .hint"), re.compile("“people” looks most at"))

    open_page(page, "Side by side")
    expect(page.get_by_role("heading", name="Where they agree")).to_be_visible()
    expect(page.locator(".bars")).to_have_count(2)
    expect(page.locator(".gauge")).to_have_count(2)
    expect(page.get_by_text("Weights in memory")).to_be_visible()
    wait_for_link(page, "with", "tiny-uncased")

    open_page(page, "All heads")
    wait_for_link(page, "page", "all_heads")
    actual = parameters(page)
    assert (actual["a"], actual["b"]) == ("The people changed the law.", "The house was good.")
    assert (actual["layer"], actual["head"], actual["mask"]) == ("2", "3", "a4")
    page.reload()
    expect(page.get_by_role("heading", name="Layer 2, head 3")).to_be_visible()
    expect(chip(page, "law")).to_have_attribute("aria-pressed", "true")
    assert parameters(page) == actual


def test_the_frame_is_seen_before_the_scripts_and_gives_way_to_the_page(chromium, server):
    with chromium.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark") as context:
        page, held = context.new_page(), []
        page.route("**/static/js/index.*.js", lambda route: held.append(route))  # the scripts do not arrive yet
        page.goto(server, wait_until="commit")
        frame = page.locator("#first-frame")
        expect(frame.get_by_role("heading", name="BERT explorer")).to_be_visible()
        expect(frame).to_contain_text("The page is being loaded")
        expect(frame).to_have_css("background-color", "rgb(20, 23, 29)")
        assert page.title() == "BERT explorer"
        expect(page.locator("#root > *")).to_have_count(0)
        while held:
            held.pop().continue_()
        expect(page.locator("#root h1")).to_have_text("Predict")
        expect(frame).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_text("Predict")


def test_filling_in_writes_into_the_text(visit):
    page = visit(PAIR + "&mask=a1").page
    guess = page.locator(".card .word").nth(1).inner_text()
    page.locator("button.bar").nth(1).click()
    expect(page.locator("button.chip[aria-pressed=true]")).to_have_count(0)
    assert guess.removeprefix("##") in page.get_by_label("Text A").input_value()
    assert "bunny" not in page.get_by_label("Text A").input_value()


def test_chips_are_used_with_the_keyboard_alone(visit):
    page = visit(PAIR).page
    chip(page, "The").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_for_link(page, "mask", "a1")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    wait_for_link(page, "mask", "a1,b2")
    page.keyboard.press("Space")
    wait_for_link(page, "mask", "a1")
    page.get_by_label("Text A").fill("The bunny ate the carrot and then it ate the rest of the garden.")
    page.get_by_label("Text A").press("Tab")
    expect(chip(page, "garden")).to_be_visible()
    stops = page.locator("button.chip").evaluate_all("chips => chips.filter((chip) => chip.tabIndex === 0).length")
    assert stops == 1


def test_rows_of_chips_without_room_fade_until_the_last_is_reached(visit):
    page = visit("/?a=" + "the+bunny+ate+a+carrot+" * 24).page
    rows = page.locator(".chips .scroll")
    expect(rows).to_have_css("mask-image", re.compile("linear-gradient"))
    rows.evaluate("(one) => { one.scrollTop = one.scrollHeight; }")
    expect(rows).to_have_css("mask-image", "none")


def test_heads_are_opened_with_the_keyboard(visit):
    page = visit(PAIR + "&page=all_heads").page
    page.locator(".board").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Layer 2, head 3")).to_be_visible()


def test_text_is_never_taken_for_markup(visit):
    evil = "<img src=x onerror=alert(1)> <b>bold</b> </script>"
    link = "?a=" + urllib.parse.quote(evil) + "&b=" + urllib.parse.quote(evil) + "&mask=a1,a10"
    page = visit("/" + link).page
    for name, sign in (("Predict", ".card"), ("All heads", ".lines .token"), ("Side by side", ".gauge")):
        open_page(page, name)
        page.locator(sign).last.wait_for()
        assert page.locator("img[src=x]").count() == 0
        assert page.locator(".chips b, .lines .token b, .card b").count() == 0


def test_the_heatmap_is_drawn(visit):
    page = visit(PAIR + "&page=all_heads").page
    page.get_by_role("radio", name="Heatmap").click()
    expect(page.locator(".js-plotly-plot .hm").first).to_be_visible()


def test_predictions_are_saved_as_a_file(visit):
    page = visit(PAIR + "&mask=a1").page
    text = saved(page)
    assert text.startswith("position,original") and text.count("\n") == 16


def test_lines_are_saved_as_pictures(visit):
    page = visit(PAIR + "&page=all_heads").page
    text = saved(page, "Lines (SVG)")
    assert text.startswith("<svg") and ">##rot</text>" in text
    file = saved_file(page, "Lines (PNG)")
    assert file.suggested_filename == "layer-1-head-1.png"
    assert file.path().read_bytes().startswith(b"\x89PNG")


def test_the_sheet_of_lines_is_saved_as_svg(visit):
    page = visit(PAIR + "&page=model_view").page
    text = saved(page, "Sheet (SVG)")
    # A frame for each of the twelve heads, the ground, that of the caption, and lines in both.
    assert text.startswith("<svg") and text.count("<rect") == 14 and text.count("<path") > 24
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="Maps").click()
    settled(page, "light")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("button", name="Sheet (PNG)")).to_be_visible()
    expect(page.get_by_role("button", name="Sheet (SVG)")).to_have_count(0)


def test_a_figure_is_saved_as_a_picture_and_as_a_page(visit):
    page = visit(PAIR + "&page=all_heads").page
    page.locator(".lines .left .token").first.wait_for()
    settled(page, "light")
    for name, begins in (("Heatmap (SVG)", b"<svg"), ("All heads (PNG)", b"\x89PNG"), ("Heatmap (HTML)", b"<!doctype")):
        content = saved_file(page, name).path().read_bytes()
        assert content.startswith(begins), (name, content[:20])
        assert b"<svg" != begins or "##rot" in content.decode()


def test_a_download_without_a_network_fails_with_a_sentence(visit):
    page = visit(PAIR + "&page=side_by_side").page
    page.get_by_role("button", name="Get bert-base-uncased").click()
    expect(page.get_by_role("alert").filter(has_text="was not downloaded")).to_be_visible()


def test_an_address_of_a_page_opens_it(visit, server):
    # Streamlit looks for its server below such an address first, which the console notes as a 404.
    one = visit()
    one.page.goto(f"{server}/attention")
    one.page.get_by_role("heading", level=1, name="All heads").wait_for()
    one.wrong[:] = [text for text in one.wrong if "404" not in text]


def test_figures_follow_a_change_of_theme(visit):
    page = visit(PAIR + "&page=all_heads").page
    ink = """() => {
      const one = document.querySelector('.js-plotly-plot .ytick text');
      return one && getComputedStyle(one).fill;
    }"""
    page.get_by_role("radio", name="Heatmap").click()
    page.locator(".js-plotly-plot .ytick text").first.wait_for()
    before = page.wait_for_function(ink).json_value()
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"(before) => {{ const now = ({ink})(); return now && now !== before; }}", arg=before)


def test_words_of_a_question_do_not_keep_the_search_from_its_page(visit):
    page = visit(PAIR).page
    page.locator(".lines .left .token").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.type("what is attention")
    expect(page.locator(".results a").first).to_contain_text("Attention methods")
    page.locator(".search").fill("base vs large")
    expect(page.locator(".results a").first).to_contain_text("Side by side")


def scrolled(page, name, pixels):
    """Scroll the page called ``name`` down by ``pixels``; return the element that scrolls."""
    main = page.get_by_test_id("stMain")
    main.evaluate("(one, pixels) => { one.scrollTop = pixels; }", pixels)
    page.wait_for_function("([name, pixels]) => window.bertScroll?.get(name) === pixels", arg=[name, pixels])
    return main


def test_a_page_opened_for_the_first_time_begins_at_its_top(visit):
    page = visit(PAIR + "&page=glossary").page
    page.locator(".entry").last.wait_for()
    main = scrolled(page, "glossary", 700)
    open_page(page, "Guide")
    page.get_by_role("heading", name="To cite").wait_for()
    page.wait_for_function("(one) => one.scrollHeight - one.clientHeight > 700", arg=main.element_handle())
    assert main.evaluate("(one) => one.scrollTop") == 0


def test_a_page_keeps_its_scroll(visit):
    page = visit(PAIR + "&page=all_heads").page
    page.locator(".lines .left .token").first.wait_for()
    main = scrolled(page, "all_heads", 300)
    open_page(page, "Neuron")
    page.locator(".neuron .key").first.wait_for()
    assert main.evaluate("(one) => one.scrollTop") == 0
    open_page(page, "All heads")
    page.wait_for_function("() => document.querySelector('[data-testid=stMain]').scrollTop === 300")
