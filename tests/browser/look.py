"""What the tests in a real Chromium read off a page, and how they act on it."""

import re
import urllib.parse

from playwright.sync_api import expect

TEXTS = ("The bunny ate the carrot.", "It was good.")
PAIR = "/?a=The+bunny+ate+the+carrot.&b=It+was+good."
ASKED = PAIR + "&mask=a3"
FIGURE = ".js-plotly-plot"
NUMBERS = """([sign, index]) => {
  const kinds = { f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array, i2: Int16Array, i4: Int32Array };
  const list = (value) => {
    if (value?.bdata) {
      const bytes = Uint8Array.from(atob(value.bdata), (letter) => letter.charCodeAt(0));
      return Array.from(new kinds[value.dtype](bytes.buffer));
    }
    return Array.from(value ?? [], (row) => (typeof row === "object" && row ? Array.from(row) : row)).flat();
  };
  return document.querySelectorAll(sign)[index].data.map((one) => (
    { type: one.type, name: one.name, x: list(one.x), y: list(one.y), z: list(one.z) }));
}"""


def parameters(page):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query))


def chip(page, word):
    return page.locator("button.chip", has_text=re.compile(rf"^(\[MASK\])?{re.escape(word)}$")).first


def wait_for_link(page, name, value):
    page.wait_for_function(
        "([name, value]) => new URL(location).searchParams.get(name) === value", arg=[name, value]
    )


def numbers(page, index=0):
    """What a figure on the page was given, once it is drawn."""
    expect(page.locator(FIGURE).nth(index).locator(".main-svg, canvas").first).to_be_attached()
    return page.evaluate(NUMBERS, [FIGURE, index])


def saved(page, name="CSV", menu=0):
    """The text of a file from a page's menu."""
    page.get_by_role("button", name="Save").nth(menu).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    return download.value.path().read_text("utf-8")


def press_row(page, row):
    """A press on the box before a row of the page's table, which is a canvas."""
    page.locator("[data-testid=stDataFrame] .dvn-scroller").first.click(
        position={"x": 18, "y": 35 * (row + 1) + 17}
    )


def share(text):
    return float(re.search(r"−?[\d.]+(?=%)", text).group().replace("−", "-")) / 100


def wider_than_the_screen(page):
    """By how many pixels what a page holds is wider than its window."""
    return page.evaluate("""() => {
      const main = document.querySelector('[data-testid=stMain]');
      return main.scrollWidth - main.clientWidth;
    }""")
