"""What the tests in a real Chromium read off a page, and how they act on it."""

import re
import time
import urllib.parse

from playwright.sync_api import TimeoutError as Overdue
from playwright.sync_api import expect

PATIENCE = 120_000  # milliseconds: a first pass compiles, and the machine may be busy
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
  return Array.from(document.querySelectorAll(sign)[index]?.data ?? [], (one) => (
    { type: one.type, name: one.name, x: list(one.x), y: list(one.y), z: list(one.z) }));
}"""


def parameters(page):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query))


def chip(page, word):
    return page.locator("button.chip", has_text=re.compile(rf"^(\[MASK\])?{re.escape(word)}$")).first


def wait_for_link(page, name, value):
    page.wait_for_function("([name, value]) => new URL(location).searchParams.get(name) === value", arg=[name, value])


def numbers(page, index=0):
    """What a figure on the page was given, once it is drawn."""
    expect(page.locator(FIGURE).nth(index).locator(".main-svg, canvas").first).to_be_attached()
    script = f"(asked) => {{ const found = ({NUMBERS})(asked); return found.length && found; }}"
    return page.wait_for_function(script, arg=[FIGURE, index]).json_value()


def saved(page, name="CSV", result=0):
    """The text of a file from the page's menu; ``result``: the number of the result in it, from 0."""
    return saved_file(page, name, result).path().read_text("utf-8")


def saved_file(page, name, result=0):
    """A file from the page's menu."""
    menu = page.get_by_role("button", name="Save", exact=True)
    button = page.get_by_role("button", name=name, exact=True).nth(result)

    def reach():
        if not button.is_visible():
            menu.click(timeout=20_000)
        menu.scroll_into_view_if_needed()  # what is drawn above the menu pushes it, and what it shows, off the screen

    return download(page, button, reach)


def download(page, button, reach=lambda: None, suffix=""):
    """The file that a press on ``button`` saves, pressed again if it was not yet listening.

    Args: page: page. button: locator of what is pressed. reach: callable, done before each press. suffix: end of the
        file's name; a late file of an earlier press that ends otherwise is passed over.
    """
    end = time.monotonic() + PATIENCE / 1000
    while True:
        try:
            reach()
            with page.expect_download(lambda file: file.suggested_filename.endswith(suffix), timeout=20_000) as actual:
                button.click(timeout=20_000)
            return actual.value
        except Overdue:
            if time.monotonic() > end:
                raise


def repeat_until(act, seen):
    """Act until it is seen: what is done while a page is drawn anew may be lost.

    Args: act: callable. seen: callable (milliseconds) that raises AssertionError if it does not come true in them.
    """
    end = time.monotonic() + PATIENCE / 1000
    while True:
        act()
        try:
            return seen(5000)
        except AssertionError:
            if time.monotonic() > end:
                raise


def point(page, place, hint, output):
    """Point at ``place`` until ``hint`` says it, a text or a pattern."""

    def act():
        page.mouse.move(0, 0)
        place.hover()

    repeat_until(act, lambda patience: expect(hint).to_have_text(output, timeout=patience))


def press_row(page, row, output="Open row"):
    """A press on the box before a row of the page's table, a canvas, until ``said`` stands below it."""
    table = page.get_by_test_id("stDataFrame").first
    chosen = table.locator(f"tr[aria-rowindex='{row + 2}'][aria-selected=true]")

    def act():
        # A second press would take the first one back.
        if not chosen.count():
            table.locator(".dvn-scroller").click(position={"x": 18, "y": 35 * (row + 1) + 17})

    repeat_until(act, lambda patience: expect(page.get_by_text(output).first).to_be_visible(timeout=patience))


def share(text):
    return float(re.search(r"−?[\d.]+(?=%)", text).group().replace("−", "-")) / 100


def settled(page, scheme):
    """Wait until a page is drawn in a color scheme, and nothing on it has changed for 300 milliseconds."""
    page.evaluate("""() => {
      window.lastChange = performance.now();
      window.changes ??= new MutationObserver(() => { window.lastChange = performance.now(); });
      window.changes.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
    }""")
    page.wait_for_function(
        """(scheme) => {
          const app = document.querySelector("[data-testid=stApp]");
          return app.dataset.testScriptState === "notRunning" && getComputedStyle(app).colorScheme === scheme &&
            performance.now() - window.lastChange > 300;
        }""",
        arg=scheme,
    )


def too_wide(page, name):
    """The color schemes in which what a page holds is wider than its window: list of texts that begin with ``name``."""
    wide = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        settled(page, scheme)
        if (pixels := wider_than_the_screen(page)) > 1:
            wide.append(f"{name}: {pixels} pixels wider in {scheme}")
    return wide


def wider_than_the_screen(page):
    """By how many pixels what a page holds is wider than its window, once its figures have taken their width."""
    over = """() => {
      const main = document.querySelector('[data-testid=stMain]');
      return main.scrollWidth - main.clientWidth;
    }"""
    try:
        page.wait_for_function(f"() => ({over})() <= 1")
    except Overdue:
        pass
    return page.evaluate(over)


def open_page(page, title):
    """Press the link to the page with this title in the sidebar, which a telephone has folded away."""
    expand, sections = page.get_by_test_id("stExpandSidebarButton"), page.locator(".sections details")
    named = page.locator("a").filter(has_text=re.compile(f"^{re.escape(title)}$"))
    section = sections.filter(has=named)
    link = section.locator(named)
    link.wait_for(state="attached")
    if expand.is_visible():
        expand.click()
    if not section.evaluate("(one) => one.open"):
        section.locator("summary").click()
    link.click()


def press_head(page, layer, head):
    """A press on the canvas of three layers by four heads, behind its margin of numbers."""
    board = page.locator(".board canvas")
    size = board.evaluate("(canvas) => [canvas.offsetWidth, canvas.offsetHeight]")
    across, down = (
        22 + (length - 22) * (place - 0.5) / count
        for length, place, count in zip(size, (head, layer), (4, 3), strict=True)
    )
    board.click(position={"x": across, "y": down})
