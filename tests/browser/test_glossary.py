"""The glossary in a real Chromium: its list, and the meaning of a term at the pointer and by keyboard."""

import re

from playwright.sync_api import expect

from tests.browser.page_reading import repeat_until

FIRST_MARK = """() => {
  const range = [...(CSS.highlights.get("glossary-term") ?? [])][0];
  if (!range) return null;
  range.startContainer.parentElement.scrollIntoView({ block: "center" });
  const box = range.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""


def test_the_list_narrows_while_a_word_is_typed_and_leads_to_a_page(visit):
    page = visit("/?page=glossary&a=The+bunny+ate+it.").page
    page.get_by_role("searchbox", name="Find a term").fill("lens")
    expect(page.locator(".glossary .entry:visible")).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="1 term")).to_be_visible()
    page.get_by_role("searchbox", name="Find a term").fill("zebra")
    expect(page.get_by_text("No term has these words.")).to_be_visible()
    page.get_by_role("searchbox", name="Find a term").fill("lens")
    page.get_by_role("link", name="Logit lens: see").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Logit lens")
    expect(page.get_by_label("Text A")).to_have_value("The bunny ate it.")


def test_a_term_tells_its_meaning_at_the_pointer_and_by_keyboard(visit):
    page = visit("/?page=guide", color_scheme="dark").page
    buttons = page.locator(".terms button")
    expect(buttons.first).to_be_attached()
    tip = page.get_by_role("tooltip")

    def point():
        place = page.wait_for_function(FIRST_MARK).json_value()
        page.mouse.move(place[0], place[1] + 60)
        page.mouse.move(*place)

    repeat_until(point, lambda patience: expect(tip).to_be_visible(timeout=patience))
    page.keyboard.press("Escape")
    expect(tip).not_to_be_visible()
    page.mouse.move(1, 1)
    buttons.first.focus()
    expect(tip).to_have_text(re.compile(f"^{buttons.first.inner_text()}.+\\.$"))
    buttons.first.blur()
    expect(tip).not_to_be_visible()


def test_marking_leaves_the_text_as_it_is(visit):
    page = visit("/?page=guide").page
    expect(page.locator(".terms button").first).to_be_attached()
    copied = page.evaluate("""() => {
      const texts = [...document.querySelectorAll("[data-testid=stMain] p")];
      const text = texts.find((one) => one.textContent.includes("word pieces"));
      getSelection().selectAllChildren(text);
      return [getSelection().toString(), text.textContent];
    }""")
    assert copied[0].strip() == copied[1].strip()
