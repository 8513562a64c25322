"""The pages about attention in a real Chromium: opened, acted upon, their numbers read."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.page_reading import (
    PAIR,
    PATIENCE,
    open_page,
    point,
    press_head,
    repeat_until,
    saved,
    saved_file,
    settled,
    share,
    too_wide,
)

TEXTS = ("The bunny ate the carrot.", "It was good.")


@pytest.fixture(scope="module")
def model(server_home):
    import bert_tf

    return bert_tf.load(server_home / "tiny-cased")


@pytest.fixture(scope="module")
def trace(model):
    return model.trace(*TEXTS)


def test_several_heads_are_drawn_together(visit, trace):
    page = visit(PAIR + "&page=all_heads").page
    press_head(page, 2, 3)
    expect(page.get_by_role("heading", name="Layer 2, head 3")).to_be_visible()
    page.get_by_text("Several heads").click()
    press_head(page, 3, 1)
    expect(page.locator(".heads .head")).to_have_count(2)
    expect(page.get_by_role("heading", name="2 heads")).to_be_visible()
    expect(page.locator(".wires path[stroke='#e69f00']").first).to_be_attached()
    colours = page.locator(".wires path").evaluate_all(
        "paths => [...new Set(paths.map(one => one.getAttribute('stroke')))]"
    )
    assert sorted(colours) == ["#0072b2", "#e69f00"]
    hint, row = page.locator(".lines .hint"), page.locator(".lines .left .token").nth(1)
    point(page, row, hint, re.compile("looks most at"))
    both = trace.attentions[[1, 2], [2, 0], 1]
    pointed = hint.inner_text()
    assert abs(share(pointed) - both.max()) < 0.01
    page.mouse.move(0, 0)
    expect(page.locator(".lines .hint")).not_to_have_text(pointed)
    row.focus()
    expect(page.locator(".lines .hint")).to_have_text(pointed)
    page.locator(".heads .head").first.click()
    expect(page.get_by_role("heading", name="Layer 3, head 1")).to_be_visible()


@pytest.mark.parametrize("least", [0, 3])
def test_lines_that_are_not_drawn_are_told(visit, model, least):
    words = "The bunny ate the carrot " * 8
    link = f"/?page=all_heads&layer=2&head=3&a={words.strip().replace(' ', '+')}&all_heads.least={least}"
    page, weights = visit(link).page, model.trace(words).attentions[1, 2]
    held = np.rint(255 * weights) / 255  # as the page gets them
    drawn = min(int((held >= max(least / 100, 0.02)).sum()), 500)
    output = "" if least else f"The strongest {drawn} of {held.size:,} lines are drawn."
    expect(page.locator(".lines .few")).to_have_text(output)
    expect(page.locator(".wires path")).to_have_count(drawn)
    token = page.locator(".lines .right .token").nth(4)
    point(page, token, page.locator(".lines .hint"), re.compile("is looked at most by|No weight of this token"))
    drawn = int((held[:, 4] >= max(least / 100, 0.003)).sum())
    output = f"The strongest {drawn} of {len(held)} lines are drawn." if drawn < len(held) and not least else ""
    expect(page.locator(".lines .few")).to_have_text(output)
    expect(page.locator(".wires path")).to_have_count(drawn)


def test_the_sheet_draws_as_many_lines_as_it_says(visit, trace):
    page = visit(PAIR + "&page=model_view").page
    caption = page.get_by_test_id("stCaptionContainer").filter(has_text="In each drawing the tokens run down")
    left_out = page.get_by_text("at most its 80 strongest lines, and none below 6% of its strongest")
    repeat_until(
        caption.get_by_test_id("stTooltipIcon").hover,
        lambda patience: expect(left_out).to_be_visible(timeout=patience),
    )
    file = saved_file(page, "Sheet (SVG)")
    flat = trace.attentions.reshape(12, -1)
    held = (np.rint(255 * np.sqrt(flat / flat.max(axis=1, keepdims=True))) / 255) ** 2
    wanted = np.minimum((held > 0.06).sum(axis=1), 80)
    assert wanted.max() == 80 and file.path().read_text("utf-8").count("<path") == wanted.sum()


@pytest.mark.parametrize("name, drawing", [("all_heads", "Lines"), ("model_view", "Sheet")])
def test_saved_lines_stay_interactive_without_a_network(visit, chromium, trace, name, drawing):
    page = visit(PAIR + f"&page={name}").page
    file = saved_file(page, f"{drawing} (HTML)")
    assert file.suggested_filename == {"Lines": "layer-1-head-1.html", "Sheet": "model-view.html"}[drawing]
    context = chromium.new_context(offline=True)
    alone, asked, wrong = context.new_page(), [], []
    alone.set_default_timeout(PATIENCE)
    alone.on("request", lambda request: asked.append(request.url))
    alone.on("pageerror", lambda error: wrong.append(str(error)))
    alone.set_content(file.path().read_text("utf-8"))
    expect(alone.locator("#about")).to_contain_text("layer 1, head 1 · “The bunny ate the carrot.” · “It was good.”")
    alone.locator("#layer").select_option("3")
    alone.locator("#head").select_option("2")
    expect(alone.get_by_role("heading", level=1)).to_have_text("Layer 3, head 2")
    held = np.rint(255 * trace.attentions[2, 1]) / 255
    expect(alone.locator(".wires path")).to_have_count(min(int((held >= 0.02).sum()), 500))
    hint = alone.locator("#lines .hint")
    point(alone, alone.locator(".left .token").nth(1), hint, re.compile("looks most at"))
    assert abs(share(hint.inner_text()) - held[1].max()) < 0.001
    alone.locator(".board canvas").click(position={"x": 30, "y": 30})
    expect(alone.get_by_role("heading", level=1)).to_have_text("Layer 1, head 1")
    context.close()
    assert asked == [] and wrong == []


def test_several_tokens_are_summed_and_both_ways_stand_beside_each_other(visit, trace):
    page = visit(PAIR + "&page=all_heads&layer=2&head=3").page
    tokens, hint, listed = (page.locator(f".lines {sign}") for sign in (".left .token", ".hint", ".strongest li"))
    expect(listed).to_have_count(8)
    page.get_by_role("button", name="Several tokens").click()
    for index in (1, 3, 4):
        tokens.nth(index).click()
    page.mouse.move(0, 0)
    expect(hint).to_contain_text("Sum of 3 tokens")
    sums = (np.rint(255 * trace.attentions[1, 2, [1, 3, 4]]) / 255).sum(axis=0)
    weights = [float(text.split()[-1]) for text in listed.all_inner_texts()]
    assert weights == pytest.approx(np.sort(sums)[::-1][:8].tolist(), abs=0.006)
    tokens.nth(3).click()
    page.mouse.move(0, 0)
    expect(hint).to_contain_text("Sum of 2 tokens")
    page.get_by_text("A→B, B→A").click()
    ways = page.locator(".lines .stage")
    expect(ways).to_have_count(2)
    count_b = sum(source == "b" for source in trace.sources) + 1  # with the separator after it
    for way, left, right in ((0, trace.length - count_b, count_b), (1, count_b, trace.length - count_b)):
        expect(ways.nth(way).locator(".left .token")).to_have_count(left)
        expect(ways.nth(way).locator(".right .token")).to_have_count(right)


def test_attention_per_word_is_of_the_words(visit, trace):
    page = visit("/?page=all_heads&layer=2&head=3&a=The+bunnies+ate+the+carrots.&b=It+was+good.").page
    tokens, listed = page.locator(".lines .left .token"), page.locator(".lines .strongest li")
    expect(listed).to_have_count(8)
    pieces = tokens.count()
    page.get_by_text("Per word", exact=True).click()
    expect(tokens).not_to_have_count(pieces)
    assert "bunnies" in [token.strip() for token in tokens.all_inner_texts()]
    page.reload()
    expect(page.get_by_role("switch", name="Per word")).to_be_checked()


def test_the_whole_of_a_long_text_is_drawn_and_zoomed(visit):
    page = visit(f"/?page=all_heads&a={'+'.join(['The+bunny+ate+the+carrot'] * 40)}").page
    tokens, scroll = page.locator(".lines .left .token"), page.locator(".lines .scroll")
    expect(tokens.nth(200)).to_be_attached()
    page.get_by_role("button", name="Whole", exact=True).click()
    assert scroll.evaluate("(one) => one.scrollHeight <= one.clientHeight + 2")
    near = page.get_by_role("button", name="Zoom in")
    while near.is_enabled():
        near.click()
    height = "(one) => one.getBoundingClientRect().height"
    assert tokens.first.evaluate(height) == 24
    page.get_by_role("button", name="Zoom out").click()
    assert tokens.first.evaluate(height) == 12
    # The wheel zooms with Ctrl; without, it scrolls.
    scroll.hover()
    page.mouse.wheel(0, 200)
    assert tokens.first.evaluate(height) == 12
    page.keyboard.down("Control")
    page.mouse.wheel(0, -2000)
    page.keyboard.up("Control")
    assert tokens.first.evaluate(height) == 24
    scroll.evaluate("(one) => { one.scrollTop = 24 * 150; }")
    page.wait_for_function("() => new URL(location).searchParams.get('from') === '151'")
    page.reload()
    expect(tokens.nth(150)).to_be_in_viewport()


def test_a_head_press_does_not_send_the_small_maps_again(visit):
    words = "+".join(["The+bunny+ate+the+carrot"] * 24)
    one = visit(f"/?page=all_heads&a={words}")
    page, sent = one.page, []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sent.append(frame)))
    page.reload()
    page.locator(".board canvas").wait_for()
    expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    settled(page, "light")
    assert any(b"c_grid" in frame for frame in sent)
    sent.clear()
    press_head(page, 2, 2)
    expect(page.get_by_role("heading", name="Layer 2, head 2")).to_be_visible()
    settled(page, "light")
    # The lines of the new head are sent; the maps of all heads are not.
    assert any(b"c_lines" in frame for frame in sent) and not any(b"c_grid" in frame for frame in sent)


def test_the_model_view_opens_a_head_and_comes_back(visit, trace):
    page = visit(PAIR + "&page=model_view").page
    press_head(page, 3, 2)
    expect(page.get_by_role("heading", name="Layer 3, head 2")).to_be_visible()
    expect(page.locator(".lines .left .token")).to_have_count(trace.length)
    page.get_by_role("button", name="All heads").click()
    page.locator(".board").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Layer 2, head 2")).to_be_visible()
    page.wait_for_function("() => new URL(location).searchParams.get('model_view.zoom') === '1'")


def test_the_drawings_of_a_long_text_are_lines_and_no_blocks_of_colour(visit):
    page = visit(f"/?page=model_view&a={'+'.join(['The+bunny+ate+the+carrot'] * 70)}").page
    page.locator(".board canvas").wait_for()
    settled(page, "light")
    # The share of the pixels of each head's drawing that are more than half as dark as its darkest one.
    dark = page.locator(".board canvas").evaluate("""canvas => {
      const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const [rows, columns] = [canvas.height / 2, width / 2].map(Math.floor);
      let [filled, all] = [0, 0];
      for (let y = 30; y < rows; y++) for (let x = 30; x < columns; x++) {
        const at = 4 * (y * width + x);
        if (data[at + 3] > 127) filled++;
        all++;
      }
      return filled / all;
    }""")
    assert 0.001 < dark < 0.5


def test_the_neuron_view_shows_the_librarys_numbers_and_follows_its_tokens(visit, model, trace):
    from bert_tf.explain import head_vectors

    page = visit(PAIR + "&page=neuron&layer=2&head=3").page
    page.locator(".query").nth(4).click()
    expect(page.locator(".query").nth(4)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".pair .say")).to_contain_text(f"Query “{trace.tokens[4]}”")
    vectors = head_vectors(model, trace, 1, 2)
    shares = [share(text) for text in page.locator(".key .share").all_inner_texts()]
    scores = [float(text.replace("−", "-")) for text in page.locator(".key .score").all_inner_texts()]
    assert shares == pytest.approx(vectors.weights(4).tolist(), abs=6e-4)
    assert scores == pytest.approx(vectors.scores(4).tolist(), abs=6e-3)
    page.locator(".key").nth(6).click()
    expect(page.locator(".pair .say")).to_contain_text(f"key “{trace.tokens[6]}”")
    page.wait_for_function("() => new URL(location).searchParams.get('neuron.key') === '6'")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".pair .say")).to_contain_text(f"key “{trace.tokens[7]}”")
    painted = page.locator(".pair .q").evaluate(
        "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, 1).data.some(Boolean)"
    )
    assert painted and page.locator(".pair .q").evaluate("canvas => canvas.width") == vectors.size


def test_methods_show_the_librarys_numbers_for_the_pressed_token(visit, model, trace):
    from bert_tf.explain import attention_flow, token_attention

    page = visit(PAIR + "&page=attention_methods&layer=3").page
    page.locator("button.token").nth(5).click()
    expect(page.get_by_role("heading", name=re.compile(re.escape(trace.tokens[5]) + ".*after layer 3"))).to_be_visible()
    expect(page.locator(".weights thead th")).to_have_count(6)
    actual, flow = token_attention(model, trace, 2, 5), attention_flow(trace, 2, [5])[0]
    wanted = [actual.raw, actual.effective, actual.norm_weighted, actual.rollout, flow / flow.sum()]
    # The row of the token itself tells this token's table from the one before.
    expect(page.locator(".weights tbody tr").nth(5).locator(".bar").nth(3)).to_have_text(
        f"{100 * actual.rollout[5]:.1f}%"
    )
    for row in (0, 5, trace.length - 1):
        shares = page.locator(".weights tbody tr").nth(row).locator(".bar").all_inner_texts()
        assert [share(text) for text in shares] == pytest.approx([float(one[row]) for one in wanted], abs=6e-4)


def test_what_heads_do_opens_a_head_and_is_saved_as_a_table(visit, trace):
    from bert_tf.explain import summarise_heads

    page = visit(PAIR + "&page=head_profiles&head_profiles.measure=sep_share").page
    press_head(page, 2, 4)
    expect(page.get_by_role("heading", name="Layer 2, head 4")).to_be_visible()
    summary = summarise_heads(trace)
    expect(page.get_by_text(f"to separators {summary.sep_share[1, 3]:.2f}")).to_be_visible()
    expect(page.locator(".js-plotly-plot .scatterlayer .point").first).to_be_visible()
    entropy = json.loads(saved(page, "JSON"))["summary"]["entropy"]
    assert entropy[1][3] == pytest.approx(summary.entropy[1, 3], abs=1e-5)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Open this head").click()
    expect(page.get_by_role("heading", level=1, name="All heads")).to_be_visible()


def test_the_warning_is_a_press_away(visit):
    page = visit(PAIR + "&page=attention_methods").page
    page.get_by_role("button", name="Attention is not explanation").click()
    expect(page.get_by_text("Wiegreffe and Pinter (2019)")).to_be_visible()


def test_on_a_telephone_the_buttons_of_charts_and_tables_cover_neither_legend_nor_numbers(visit):
    page = visit(PAIR + "&page=head_profiles", viewport={"width": 390, "height": 844}).page
    chart, table = page.locator(".js-plotly-plot").first, page.get_by_test_id("stDataFrame").first
    chart.locator(".point").first.wait_for()
    table.wait_for()
    settled(page, "light")

    chart.hover()
    expect(chart.locator(".modebar")).to_be_hidden()
    table.hover()
    assert page.get_by_test_id("stElementToolbar").filter(visible=True).count() == 0
    # On a wide screen they are there, above what they belong to.
    page.set_viewport_size({"width": 1440, "height": 900})
    table.hover()
    buttons = page.get_by_test_id("stElementToolbar").filter(visible=True).last
    buttons.wait_for()
    above = "([one, other]) => one.getBoundingClientRect().bottom <= other.getBoundingClientRect().top + 1"
    page.wait_for_function(above, arg=[buttons.element_handle(), table.element_handle()])


def test_nothing_is_wider_than_a_telephone(visit):
    page = visit(PAIR + "&page=model_view", viewport={"width": 390, "height": 844}).page
    for name, sign in (
        ("Model view", ".board canvas"),
        ("Neuron", ".neuron .key"),
        ("Attention methods", ".weights .bar"),
        ("Head profiles", ".js-plotly-plot"),
    ):
        open_page(page, name)
        page.locator(sign).last.wait_for()
        assert too_wide(page, name) == []


def test_a_figure_from_the_command_line_draws_itself_without_a_network(chromium, server_home, trace, tmp_path):
    from bert_tf.cli import main

    path = tmp_path / "figure.html"
    assert main(["explain", "attention", *TEXTS, "--model", str(server_home / "tiny-cased"), "--html", str(path)]) == 0
    context = chromium.new_context(offline=True)
    page, wrong = context.new_page(), []
    page.set_default_timeout(PATIENCE)
    page.on("request", lambda request: request.url.startswith("http") and wrong.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(path.as_uri())
    page.locator(".js-plotly-plot .hm").first.wait_for()
    assert page.locator(".ytick").count() == trace.length
    context.close()
    assert wrong == []


@pytest.mark.parametrize("name", ["all_heads", "neuron"])
@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_why_attention_is_not_explanation_opens_where_it_is_asked_for(visit, name, size):
    page = visit(f"{PAIR}&page={name}", viewport=dict(zip(("width", "height"), size))).page
    page.get_by_role("button", name="Attention is not explanation").click()
    expect(page.get_by_text("Is attention an explanation? No, not by itself.")).to_be_in_viewport()
    wait_for = page.get_by_role("heading", level=1, name="All heads" if name == "all_heads" else "Neuron")
    expect(wait_for).to_have_count(1)


def test_lines_stay_at_their_tokens_when_these_get_wider(visit):
    page = visit(PAIR + "&page=all_heads").page
    expect(page.locator(".wires path").first).to_be_attached()
    page.locator(".stage .column.left").evaluate("(column) => { column.style.minWidth = '11rem'; }")
    assert page.locator(".wires").evaluate("(wires) => wires.getScreenCTM().d") == pytest.approx(1)
