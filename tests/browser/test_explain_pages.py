"""The pages that ask why, in a real Chromium."""

import re

from playwright.sync_api import expect

from tests.browser.page_reading import (
    open_page,
    point,
    saved,
    wait_for_link,
    wider_than_the_screen,
)

PAIR = "a=The+bunny+ate+the+carrot.&b=It+was+good.&mask=a3"


def test_a_layer_is_opened_and_its_word_followed(visit):
    page = visit(f"/?page=logit_lens&{PAIR}").page
    cells = page.locator(".cells td[data-at]")
    expect(cells).to_have_count(4)
    expect(page.locator(".cells td.edge")).to_have_count(1)
    point(page, cells.nth(1), page.locator(".cells .hint"), re.compile("after layer 1: "))
    cells.nth(1).click()
    expect(page.get_by_text("Predictions after layer 1")).to_be_visible()
    wait_for_link(page, "logit_lens.layer", "1")
    # What the table says of the last layer is what the figure and the sentence below it are about.
    answer = cells.nth(3).inner_text()
    expect(page.get_by_text(re.compile(rf"^{re.escape(answer)} has (< )?[\d.]+% at the end"))).to_be_visible()
    expect(page.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(2)
    page.get_by_role("radio", name="All tokens").click()
    expect(page.locator(".cells tbody tr")).to_have_count(16)


def test_a_head_is_switched_off_and_on_with_the_keyboard_alone(visit):
    page = visit(f"/?page=ablation&{PAIR}").page
    cells = page.locator(".cells td[data-at]")
    expect(cells).to_have_count(18)
    before = page.locator(".bars .share").first.inner_text()
    assert re.match(r"(.+) → \1$", before)
    cells.first.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".cells .hint")).to_contain_text("Layer 2, head 2")
    wait_for_link(page, "ablation.off", "2-2")
    expect(cells.nth(7)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    wait_for_link(page, "ablation.off", "2-2.x")
    page.get_by_role("button", name="Switch everything on").click()
    expect(page.locator(".cells td.off")).to_have_count(0)
    wait_for_link(page, "ablation.off", None)


def test_a_sweep_colours_the_grid_and_ranks_the_heads(visit):
    page = visit(f"/?page=ablation&{PAIR}").page
    page.get_by_role("radio", name="Effect of each part alone").click()
    expect(page.get_by_role("heading", name="The strongest parts")).to_be_visible()
    expect(page.locator(".cells .low")).to_have_text("opposes the answer")
    expect(page.locator(".js-plotly-plot .bars .point")).to_have_count(12)
    output = re.compile(r"Layer 1, head 1: [+−]\d\.\d{3} nats")
    point(page, page.locator(".cells td[data-at]").first, page.locator(".cells .hint"), output)


def test_words_stand_on_the_colours_of_their_scores(visit):
    page = visit(f"/?page=saliency&{PAIR}&saliency.method=occlusion").page
    words = page.locator(".marks .word")
    expect(words).to_have_count(10)
    assert page.locator(".marks [data-side=a]").inner_text() == "The bunny ate [MASK] carrot."
    point(page, words.nth(1), page.locator(".marks .hint"), re.compile(r"bunny: [+−]\d\.\d{3} nats"))
    page.mouse.move(0, 0)
    expect(page.locator(".marks .hint")).not_to_contain_text("bunny")
    words.first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".marks .hint")).to_contain_text("bunny")
    page.get_by_role("radio", name="Integrated gradients").click()
    expect(page.get_by_text("convergence delta")).to_be_visible()


def test_scores_are_saved_as_a_table_and_as_a_figure(visit):
    page = visit(f"/?page=saliency&{PAIR}&saliency.method=gradient").page
    page.locator(".marks .word").first.wait_for()
    for name, begins, has in (
        ("CSV", "source,index,word,score", "b,2,good,"),
        ("JSON", "{", '"method": "gradient-x-input"'),
        ("Words (HTML)", "<!doctype html>", "log-probability of "),
    ):
        text = saved(page, name)
        assert text.startswith(begins) and has in text, name


def test_inputs_are_brought_to_one_length_and_patched(visit):
    page = visit(f"/?page=patching&{PAIR}").page
    field = page.get_by_label("Text A of the other input")
    field.fill("The unbelievable bunny ate the carrot.")
    field.press("Enter")
    expect(page.get_by_text("can only be patched at its own position")).to_be_visible()
    field.fill("The bunny made the carrot.")
    field.press("Enter")
    expect(page.locator(".js-plotly-plot .heatmaplayer .hm")).to_have_count(1)
    expect(page.get_by_role("heading", name="Layer by position")).to_be_visible()
    wait_for_link(page, "patching.a", "The bunny made the carrot.")


def test_texts_are_changed_and_asked_again(visit):
    page = visit(f"/?page=counterfactuals&{PAIR}").page
    expect(page.locator(".card .note")).to_have_text(["The full text", "Only the words before", "Only the words after"])
    page.get_by_role("radio", name="One word less").click()
    expect(page.get_by_role("heading", name="Without each word")).to_be_visible()
    expect(page.locator(".js-plotly-plot .bars .point")).to_have_count(9)
    page.get_by_role("radio", name="Another word").click()
    page.get_by_label("by", exact=True).fill("dog")
    page.get_by_label("by", exact=True).press("Enter")
    expect(page.get_by_role("heading", name='"dog" for "The"')).to_be_visible()
    page.get_by_role("radio", name="A and B swapped").click()
    expect(page.get_by_text("[CLS] It was good . [SEP]")).to_be_visible()
    page.get_by_role("radio", name="Minimal pairs").click()
    expect(page.get_by_text(re.compile(r"The margin is [\d.]+ nats"))).to_be_visible()
    wait_for_link(page, "counterfactuals.kind", "pairs")


def test_a_visitor_s_markup_stays_text(visit):
    evil = "%3Cimg+src%3Dx+onerror%3Dalert(1)%3E+%3Cb%3Ebold%3C%2Fb%3E"
    page = visit(f"/?page=logit_lens&a={evil}&b={evil}&mask=a1&logit_lens.rows=all").page
    for name, sign in (
        ("Logit lens", ".cells td"),
        ("Saliency", ".marks .word"),
        ("Counterfactuals", ".card"),
    ):
        open_page(page, name)
        page.locator(sign).last.wait_for()
        assert page.locator("img[src=x]").count() == 0
        assert page.locator(".cells b, .marks b, .card b, [data-testid=stCaptionContainer] b").count() == 0


def test_every_method_can_be_read_and_chosen_on_a_phone(visit):
    page = visit(f"/?page=saliency&{PAIR}&saliency.method=input-reduction", viewport={"width": 390, "height": 844}).page
    expect(page.locator(".marks .word")).to_have_count(10)
    for name in (
        "Integrated gradients",
        "Gradient × input",
        "SmoothGrad",
        "Occlusion",
        "LIME",
        "Input reduction",
        "HotFlip",
    ):
        button = page.get_by_role("radio", name=name)
        box = button.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, (name, box)
        assert button.evaluate("one => one.scrollWidth <= one.clientWidth + 1"), name
    assert not wider_than_the_screen(page)
    page.get_by_role("radio", name="SmoothGrad").click()
    expect(page.get_by_role("radio", name="0.01")).to_be_visible()
    expect(page.get_by_text("With the noise it has")).to_be_visible()
    wait_for_link(page, "saliency.method", "smoothgrad")
