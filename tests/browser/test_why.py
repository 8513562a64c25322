"""The pages that ask why, in a real Chromium."""

import re

from playwright.sync_api import expect

from tests.browser.test_explorer import parameters, wait_for_link

PAIR = "a=The+bunny+ate+the+carrot.&b=It+was+good.&mask=a3"


def test_a_head_is_switched_off_and_on_with_the_keyboard_alone(visit):
    page = visit(f"/?page=ablation&{PAIR}").page
    cells = page.locator(".cells td[data-at]")
    expect(cells).to_have_count(18)
    before = page.locator(".bars .share").first.inner_text()
    assert re.match(r"(.+) → \1$", before)
    cells.first.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    wait_for_link(page, "ablation.off", "2-2")
    expect(cells.nth(7)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    wait_for_link(page, "ablation.off", "2-2.x")
    page.get_by_role("button", name="Switch everything on").click()
    expect(page.locator(".cells td.off")).to_have_count(0)
    assert "ablation.off" not in parameters(page)


def test_a_visitor_s_markup_stays_text(visit):
    evil = "%3Cimg+src%3Dx+onerror%3Dalert(1)%3E+%3Cb%3Ebold%3C%2Fb%3E"
    page = visit(f"/?page=lens&a={evil}&b={evil}&mask=a1&lens.rows=all").page
    for name, sign in (
        ("Layer by layer", ".cells td"),
        ("Which words", ".marks .word"),
        ("What if", ".card"),
    ):
        page.get_by_role("link", name=name).click()
        page.locator(sign).last.wait_for()
        assert page.locator("img[src=x]").count() == 0
        assert page.locator(".cells b, .marks b, .card b, [data-testid=stCaptionContainer] b").count() == 0
