"""Every page read by axe-core, in light and in dark: names, roles, contrast, and what the keyboard reaches."""

import re
import shutil

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Error, expect

from tests.app.conftest import LIMITS, save_tiny
from tests.app.family_models import GOLDEN_FOLDERS
from tests.app.random_task_models import save_tasks
from tests.browser.conftest import serving
from tests.browser.page_reading import FIGURE, repeat_until, settled, wider_than_the_screen
from tests.layers.test_causal import APART, LEFT, make_reader
from ui.shell import catalogue

TEXTS = "a=The+bunny+ate+the+carrot.&b=It+was+good.&mask=a3"
#: A link to a page with something on it, and the sign that it is drawn.
_LINKS = {
    "predict": (TEXTS, ".bars .bar"),
    "all_heads": (TEXTS, ".lines .token"),
    "all_heads heatmap": (f"{TEXTS}&all_heads.as=map", FIGURE),
    "model_view": (TEXTS, ".board canvas"),
    "neuron": (TEXTS, ".neuron .key"),
    "attention_methods": (TEXTS, ".weights .bar"),
    "head_profiles": (TEXTS, FIGURE),
    "logit_lens": (f"{TEXTS}&logit_lens.layer=1", FIGURE),
    "ablation": (TEXTS, ".cells td"),
    "contributions": (TEXTS, FIGURE),
    "saliency": (TEXTS, FIGURE),
    "patching": (f"{TEXTS}&patching.a=The+bunny+made+the+carrot.", FIGURE),
    "tcav": ("", FIGURE),
    "counterfactuals": (TEXTS, ".bars .bar"),
    "input_embeddings": (TEXTS, FIGURE),
    "word_senses": ("", FIGURE),
    "nearest_words": (TEXTS, ".cells td"),
    "factors": (TEXTS, FIGURE),
    "side_by_side": (TEXTS, FIGURE),
    "layer_similarity": ("", FIGURE),
    "agreement": ("", "[data-testid=stDataFrame] canvas"),
    "task_predictions": ("task_predictions.model=classes&a=the+cat+sat", FIGURE),
    "task_predictions tags": ("task_predictions.model=tags&a=the+cat+ran+in+London", ".spans .text"),
    "task_predictions answer": ("task_predictions.model=answers&a=where+was+it&b=it+was+in+London.", FIGURE),
    "fine_tuning_changes": ("fine_tuning_changes.model=classes&a=the+cat+sat", FIGURE),
    "fine_tune": ("", "input[type=file]"),
    "training_curves": ("", FIGURE),
    "time_lapse": ("a=He+was+born+in+London.&mask=a2", FIGURE),
    "dataset": ("", "[data-testid=stDataFrame] canvas"),
    "dataset map": ("dataset.look=map&dataset.row=2", FIGURE),
    "architecture": (TEXTS, FIGURE),
    "directionality": ("a=The+cat+sat+on+the+mat.&mask=a5", ".bars .bar"),
    "replaced_token_detection": (
        "model=electra-discriminator&a=w1+w2+w3+w4+w5&replaced_token_detection.share=40",
        ".marks .word",
    ),
    "architectures": ("", FIGURE),
    "guide": ("", "[data-testid=stMain] h2"),
    "models": ("", "[data-testid=stExpander]"),
}
#: Every page: one that is not named above with the texts it reads, drawn when a heading stands below its title.
PAGES = {
    name: (TEXTS if page.reads_texts else "", "[data-testid=stMain] h2") for name, page in catalogue.pages().items()
} | _LINKS
#: Rule -> parts of what Streamlit's own widgets draw that it is not kept in.
STREAMLIT = {}


def save_all(home):
    """Small random models of every kind that a page asks for, in the folder ``home``."""
    save_tasks(home)
    # Several models here have its shape: its run tells which it came from.
    (home / "classes" / "run").mkdir()
    (home / "classes" / "run" / "settings.json").write_text('{"start": "plain"}')
    save_tiny(home, "tiny-cased", "bert-base-cased-embedded", num_hidden_layers=3, num_attention_heads=4)
    save_tiny(home, "tiny-uncased", "bert-small-uncased-embedded", num_hidden_layers=2, num_attention_heads=2)
    for name in ("electra-discriminator", "electra-generator"):
        shutil.copytree(GOLDEN_FOLDERS / name, home / name)
    from bert_tf import checkpoints

    for kind in (LEFT, APART):
        reader = make_reader(kind)
        checkpoints.save(home / kind, reader.config, reader.tokenizer, reader.model)
    names = sorted(folder.name for folder in home.iterdir() if folder.is_dir())
    offered = f"offered = {names}".replace("'", '"')
    (home / "explorer.toml").write_text(re.sub("offered = .*", offered, LIMITS))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """In the place of the server of the other tests: one with a model for every page."""
    home = tmp_path_factory.mktemp("access-browser")
    save_all(home)
    with serving(home) as address:
        yield address


def test_every_page_is_read_by_axe_and_fits_a_telephone(visit, server):
    one = visit()
    page = one.page
    page.add_init_script(AXE_SCRIPT)  # compiled once for each page that is opened
    # A page that fails is read once more by itself: all of them take minutes.
    wrong = {name: _problems(one, name) and _problems(one, name) for name in PAGES}
    # A telephone puts the sidebar away.
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    settled(page, "dark")
    wrong["sidebar"] = _violations(page, "color-contrast")
    assert {name: actual for name, actual in wrong.items() if actual} == {}


def _problems(one, name):
    """What is wrong with a page, on a telephone in dark and in a wide window in light."""
    params, sign = PAGES[name]
    page = one.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    try:
        one.open(f"/?page={name.split()[0]}&{params}")
        expect(page.locator(sign).last, "nothing is drawn").to_be_attached()
        settled(page, "dark")
        wrong = _violations(page, "color-contrast")
        if (pixels := wider_than_the_screen(page)) > 1:
            wrong.append(f"{pixels} pixels wider than a telephone")
        wrong += _cut_labels(page)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        settled(page, "light")
    except (AssertionError, Error) as problem:  # a page that does not come to rest
        return [str(problem)]
    return wrong + _violations(page) + _figures_without_words(page) + _cut_labels(page)


def _violations(page, *rules):
    """What axe finds that is serious or critical, and headings out of order."""
    options = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    actual = page.evaluate("(options) => axe.run(document, options).then((found) => found.violations)", options)
    return [
        f"{one['id']}: {node['target'][-1]}: {node['html'][:120]}"
        for one in actual
        if one["impact"] in ("serious", "critical") or one["id"] == "heading-order"
        for node in one["nodes"]
        if not any(known in node["html"] for known in STREAMLIT.get(one["id"], ()))
    ]


def _cut_labels(page):
    """Labels and titles of axes that stick out of their figure: its margins are worked out before it is drawn."""
    return page.evaluate("""() => [...document.querySelectorAll(".js-plotly-plot")].flatMap((plot) => {
      const edge = plot.querySelector(".main-svg").getBoundingClientRect();
      return [...plot.querySelectorAll("[class$=tick] text, [class^=g-][class$=title] text")].filter((text) => {
        const box = text.getBoundingClientRect();
        const across = box.left < edge.left - 2 || box.right > edge.right + 2;
        return across || box.top < edge.top - 2 || box.bottom > edge.bottom + 2;
      }).map((text) => `cut off: ${text.textContent}`);
    })""")


def _figures_without_words(page):
    """Figures that a screen reader finds neither a name nor a sentence for."""
    named = page.get_by_role("figure").filter(has=page.locator(FIGURE)).filter(has=page.locator(".say:not(:empty)"))
    figures = page.locator(FIGURE)
    try:
        # Figures that are still being drawn are counted again.
        repeat_until(figures.count, lambda patience: expect(named).to_have_count(figures.count(), timeout=patience))
    except AssertionError as error:
        return [str(error)]
    return []


def test_what_hovering_tells_is_a_table_for_the_keyboard(visit):
    page = visit("/?page=word_senses").page
    figure = page.get_by_role("figure", name="The word in each sentence, as points")
    expect(figure.locator(".say")).to_have_text(re.compile(r"^\d+ points: .*money \d+"))
    ask = figure.get_by_role("button", name="The numbers as a table")
    assert ask.evaluate("button => button.offsetWidth") == 1  # no clutter for those who see the figure
    ask.focus()
    assert ask.evaluate("button => button.offsetWidth") > 100
    page.keyboard.press("Enter")
    count = int(figure.locator(".say").inner_text().split()[0])
    expect(figure.locator("tbody tr")).to_have_count(count)
    expect(figure.get_by_role("region").get_by_role("cell", name=re.compile("bank")).first).to_be_visible()
    figure.get_by_role("button", name="Hide the table").press("Enter")
    expect(figure.locator("tbody tr")).to_have_count(0)


def test_lines_between_tokens_are_said(visit):
    page = visit(f"/?page=all_heads&{TEXTS}").page
    wires = page.get_by_role("img", name=re.compile(r"^\d+ lines, the strongest: “.+” to “.+” \d"))
    expect(wires).to_be_visible()
    page.locator(".lines .left .token").first.focus()
    page.keyboard.press("ArrowDown")
    hint = page.locator(".lines .hint[aria-live=polite]")
    expect(hint).to_have_text(re.compile(r"^“The” looks most at “.+”, [\d.]+%"))
    other = re.search("at “(.+?)”, ", hint.inner_text()).group(1)
    expect(page.get_by_role("option", name=re.compile(rf"^{re.escape(other)}: [\d.]+%")).first).to_be_attached()


def test_high_contrast_keeps_the_colours_that_tell_something(visit):
    page = visit(f"/?page=predict&{TEXTS}", forced_colors="active").page
    seen = "(one, before) => getComputedStyle(one, before).backgroundColor"

    def colours(sign, before=None):
        page.locator(sign).first.wait_for()
        return {one.evaluate(seen, before) for one in page.locator(sign).all()}

    blank = page.locator("body").evaluate(seen, None)
    assert blank not in colours(".bars .bar", "::before")
    assert blank not in colours(".gauge .yes") | colours(".gauge .no")
    assert colours(".chip[aria-pressed=true]").isdisjoint(colours("button.chip[aria-pressed=false]"))
    assert colours(".controls input:checked") != {blank}
    choice = "[data-testid=stSidebar] [data-testid=stButtonGroup] button"
    assert colours(f"{choice}[aria-checked=true]").isdisjoint(colours(f"{choice}[aria-checked=false]"))
    page.goto(page.url.replace("?", "?page=saliency&"))
    assert len(colours(".marks .word")) > 2
    page.locator(".terms .list button").first.wait_for()
    assert page.evaluate("CSS.highlights.get('glossary-term').size") == 0  # they would look like selected text


def test_what_a_finger_presses_is_large_enough(chromium, server):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    sizes = {}
    for name, signs in (("predict", ("button.chip", ".lines .token", ".terms button")), ("neuron", (".query",))):
        page.goto(f"{server}/?page={name}&{TEXTS}")
        for sign in signs:
            page.locator(sign).first.wait_for()
            boxes = page.locator(sign).evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().toJSON())")
            sizes[sign] = min(min(box["width"], box["height"]) for box in boxes)
    context.close()
    assert {sign: size for sign, size in sizes.items() if size < 24} == {}
