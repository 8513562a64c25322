"""Words as vectors, two sides, whole files: what a visitor does, in a real Chromium."""

import csv
import io
import json
import re

import pytest
from playwright.sync_api import expect

import bert_tf
from bert_tf.explain import (
    agreement,
    compare,
    embedding_parts,
    factorise,
    feed_forward_activations,
    layer_similarity,
    nearest_contexts,
    nearest_tokens,
    occurrences,
    principal_components,
    read_rows,
    score_rows,
    summarise_rows,
)
from bert_tf.explain.models.architecture import layer_activations
from bert_tf.explain.representations.layer_similarity import chance_similarity
from bert_tf.explain.representations.vectors import word_ids
from tests.browser.page_reading import (
    FIGURE,
    NUMBERS,
    PAIR,
    chip,
    numbers,
    open_page,
    parameters,
    press_row,
    saved,
    wait_for_link,
)
from ui.samples import word_senses
from ui.shell.limits import ROOT
from ui.widgets.formatting import share

TEXTS = ("The bunny ate the carrot.", "It was good.")


@pytest.fixture(scope="module")
def cased(server_home):
    return bert_tf.load(server_home / "tiny-cased")


@pytest.fixture(scope="module")
def uncased(server_home):
    return bert_tf.load(server_home / "tiny-uncased")


def test_the_sum_is_drawn_and_follows_a_mask(visit, cased):
    page = visit(PAIR + "&page=input_embeddings").page
    parts = embedding_parts(cased, cased.trace(*TEXTS))
    expect(page.locator(FIGURE)).to_have_count(4)
    for row, bars in enumerate(numbers(page)):
        assert bars["x"] == pytest.approx(parts.shares[row].tolist(), abs=1e-4)
    chip(page, "good").click()
    wait_for_link(page, "mask", "b2")
    masked = embedding_parts(cased, cased.trace(*TEXTS, mask=["good"]))
    page.wait_for_function(
        f"(wanted) => Math.abs(({NUMBERS})(['{FIGURE}', 0])[0]?.x?.[13] - wanted) < 1e-4",
        arg=float(masked.shares[0, 13]),
    )
    rows = list(csv.DictReader(io.StringIO(saved(page))))
    assert [float(row["token_norm"]) for row in rows] == pytest.approx(masked.norms[0].tolist(), rel=1e-3)
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="Position").click()
    wait_for_link(page, "input_embeddings.of", "position")


def test_a_word_moves_through_the_layers(visit, cased):
    page = visit("/?page=word_senses&word_senses.layer=1").page
    read = word_senses.read(word_senses.example("bank"), 100, 2000)
    actual = occurrences(cased, read.texts, "bank")
    wanted, _ = principal_components(actual.vectors[1], 2)
    money = [index for index, sense in enumerate(read.senses) if sense == "money"]
    page.wait_for_function(
        f"(wanted) => Math.abs(({NUMBERS})(['{FIGURE}', 0])[0]?.x?.[0] - wanted) < 1e-3",
        arg=float(wanted[money[0], 0]),
    )
    assert numbers(page)[0]["x"] == pytest.approx(wanted[money, 0].tolist(), abs=1e-3)
    page.get_by_role("slider").first.press("ArrowRight")
    wait_for_link(page, "word_senses.layer", "2")
    wanted, _ = principal_components(actual.vectors[2], 2)
    page.wait_for_function(
        f"(wanted) => Math.abs(({NUMBERS})(['{FIGURE}', 0])[0]?.x?.[0] - wanted) < 1e-3",
        arg=float(wanted[money[0], 0]),
    )
    page.get_by_role("radio", name="UMAP").click()
    wait_for_link(page, "word_senses.way", "umap")
    page.get_by_text("3D", exact=True).click()
    wait_for_link(page, "word_senses.space", "1")
    page.wait_for_function(f"() => document.querySelector('{FIGURE}')?.data?.[0]?.type === 'scatter3d'")
    page.get_by_role("radio", name="bat").click()
    expect(page.get_by_text("“bat” 18 times in 18 sentences")).to_be_visible()


def test_own_sentences_are_typed(visit):
    page = visit("/?page=word_senses").page
    page.get_by_role("radio", name="Your own").click()
    expect(page.get_by_text("Type a word, and below it sentences")).to_be_visible()
    page.get_by_label("Word", exact=True).fill("bank")
    page.get_by_label("Word", exact=True).press("Enter")
    page.get_by_label("Sentences").fill("a | The bank.\n<b>b</b> | <img src=x onerror=alert(1)> bank bank")
    page.get_by_label("Sentences").press("Control+Enter")
    expect(page.get_by_text("“bank” 3 times in 2 sentences")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0


def test_neighbours_of_a_pressed_cell(visit, cased):
    page = visit(PAIR + "&page=nearest_words").page
    trace = cased.trace(*TEXTS)
    vectors = trace.hidden_states[2]
    near = nearest_tokens(cased, vectors, 2, True, word_ids(cased.tokenizer))
    wanted = [next(one.token for one in two if one.id != own) for two, own in zip(near, trace.token_ids.tolist())]
    cells = page.locator(".cells tbody td")
    cells.last.wait_for()
    width = len(trace.hidden_states) + 1
    texts = cells.all_inner_texts()
    assert [texts[row * width + 3] for row in range(trace.length)] == wanted
    cells.nth(2 * width + 3).click()
    wait_for_link(page, "nearest_words.at", "2")
    wait_for_link(page, "nearest_words.vector", "3")
    expect(page.get_by_text("After layer 2", exact=True)).to_be_visible()
    page.get_by_role("radio", name="In a text").click()
    wait_for_link(page, "nearest_words.among", "text")
    expect(page.get_by_role("heading", name="Nearest contexts in the text")).to_be_visible()
    sample = read_rows((ROOT / "assets/samples/sentences.txt").read_bytes()).rows
    (places,) = nearest_contexts(cased, trace.hidden_states[2, [2]], 2, sample, 20, True).nearest
    rows = list(csv.DictReader(io.StringIO(saved(page, result=1))))
    assert [float(row["similarity"]) for row in rows] == pytest.approx([one.similarity for one in places], abs=1e-4)
    page.keyboard.press("Escape")
    press_row(page, 0)
    page.get_by_role("button", name="Open here").click()
    wait_for_link(page, "a", places[0].row.text_a)


def test_a_factor_on_the_words_and_its_unit_in_the_architecture(visit, cased):
    page = visit(PAIR + "&page=factors&factors.count=4&factors.at=1").page
    trace = cased.trace(*TEXTS)
    actual = factorise(feed_forward_activations(cased, trace), 4)
    drawn = (actual.weights / actual.weights.max(axis=1, keepdims=True)).ravel()
    assert numbers(page)[0]["z"] == pytest.approx(drawn.tolist(), abs=2e-3)
    page.get_by_role("radio", name="3", exact=True).click()
    wait_for_link(page, "factors.at", "3")
    places = [place for place, source in enumerate(trace.sources) if source is not None]
    output = [f"{trace.tokens[place].removeprefix('##')}: {actual.weights[2, place]:.2f}" for place in places]
    expect(page.locator(".marks .word").first).to_have_attribute("data-tip", output[0])
    assert page.locator(".marks .word").evaluate_all("(words) => words.map((word) => word.dataset.tip)") == output
    rows = list(csv.DictReader(io.StringIO(saved(page))))
    third = [float(row["weight"]) for row in rows if row["factor"] == "2"]
    assert third == pytest.approx(sorted(actual.weights[2].tolist(), reverse=True), abs=1e-3)
    page.keyboard.press("Escape")
    unit = actual.strongest_units(2, 1)[0]
    button = f"Layer {unit.layer + 1}, unit {unit.unit + 1} in Architecture"
    press_row(page, 0, button)
    page.get_by_role("button", name=button).click()
    wait_for_link(page, "page", "architecture")
    values = layer_activations(cased, trace, unit.layer)["feed_forward_wide"]
    page.wait_for_function(
        f"(wanted) => Math.abs(({NUMBERS})(['{FIGURE}', 0])[0]?.z?.[wanted[0]] - wanted[1]) < 2e-3",
        arg=[values.shape[1] + unit.unit, float(values[1, unit.unit])],
    )


def test_layers_by_canonical_correlations(visit, cased, uncased):
    page = visit(PAIR + "&page=layer_similarity&layer_similarity.source=view&with=tiny-uncased").page
    page.get_by_role("radio", name="SVCCA").click()
    wait_for_link(page, "layer_similarity.measure", "svcca")
    traces = [[bert.trace(*TEXTS)] for bert in (cased, uncased)]
    expect(page.get_by_role("heading", name="SVCCA of every layer with every layer")).to_be_visible()
    output = f"shuffled it is {chance_similarity(*traces, 'svcca'):.2f} here"
    expect(page.get_by_text(output)).to_be_visible()
    wanted = layer_similarity(*traces, measure="svcca").ravel().tolist()
    assert numbers(page)[0]["z"] == pytest.approx(wanted, abs=2e-3)


def test_two_texts_stand_side_by_side(visit, cased):
    page = visit(PAIR + "&page=side_by_side&mask=a4").page
    page.get_by_role("radio", name="Two texts").click()
    expect(page.get_by_role("heading", name="Side by side")).to_be_visible()
    page.get_by_label("Second text A").fill("The dog ate the bone.")
    page.get_by_label("Second text A").press("Enter")
    wait_for_link(page, "side_by_side.a", "The dog ate the bone.")
    page.locator(".chips").nth(1).locator("button.chip", has_text=re.compile("^(bone|bo)$")).first.click()
    wait_for_link(page, "side_by_side.mask", "a4")
    expect(page.locator(".card .title").last).to_have_text(re.compile("^(bone|bo|##ne)$"))
    rows = list(csv.DictReader(io.StringIO(saved(page))))
    second = parameters(page)
    traces = [
        cased.trace(*TEXTS, mask=["carrot"]),
        cased.trace("The dog ate the bone.", second.get("side_by_side.b"), mask=["bone"]),
    ]
    actual = compare(*traces, cased.tokenizer, cased.tokenizer, 3, 3, across=True)
    first = [row for row in rows if (row["question"], row["rank"]) == ("mask", "1")]
    assert [float(row["divergence_bits"]) for row in first] == pytest.approx(
        [mask.divergence for mask in actual.masks], abs=1e-4
    )
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="Logit lens").click()
    expect(page.get_by_text("The likeliest word after each layer")).to_be_visible()
    wait_for_link(page, "side_by_side.look", "layers")  # written once all is drawn
    page.reload()
    expect(page.get_by_text("The likeliest word after each layer")).to_be_visible()


def test_layers_of_two_models_are_likened(visit, cased, uncased):
    page = visit("/?page=layer_similarity").page
    rows = read_rows((ROOT / "assets/samples/sentences.txt").read_bytes()).rows
    wanted = layer_similarity(*([bert.trace(row.text_a) for row in rows] for bert in (cased, uncased)))
    assert numbers(page)[0]["z"] == pytest.approx(wanted.ravel().tolist(), abs=1e-3)
    page.get_by_role("radio", name="The page's text").click()
    wait_for_link(page, "layer_similarity.source", "view")
    page.wait_for_function(f"() => document.querySelectorAll('{FIGURE}').length === 1")


def test_the_row_two_models_differ_on_most_opens_in_compare(visit, cased, uncased):
    page = visit("/?page=agreement&agreement.file=pairs.jsonl").page
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    rows = list(csv.DictReader(io.StringIO(saved(page))))
    actual = agreement(cased, uncased, read_rows((ROOT / "assets/samples/pairs.jsonl").read_bytes(), "jsonl").rows)
    assert [int(row["row"]) for row in rows] == [one.row.number for one in actual.rows]
    assert [float(row["divergence_bits"]) for row in rows] == pytest.approx(
        [one.divergence for one in actual.rows], abs=1e-4
    )
    page.keyboard.press("Escape")
    press_row(page, 0)
    page.get_by_role("button", name="Open here").click()
    expect(page.get_by_role("heading", name="Where they agree")).to_be_visible()
    wait_for_link(page, "a", actual.rows[0].row.text_a)
    assert "mask" in parameters(page)


def test_an_uploaded_file_is_asked_filtered_and_opened(visit, cased):
    page = visit("/?page=dataset&dataset.file=upload&dataset.hide=last").page
    lines = [{"text_a": f"The cat number {n} sat.", "text_b": "It <b>was</b> good."} for n in range(45)]
    lines[7]["text_a"] = "A dog ran."
    data = "\n".join(map(json.dumps, lines)) + "\nno json"
    page.locator("input[type=file]").set_input_files(
        {"name": "mine.jsonl", "mimeType": "application/jsonl", "buffer": data.encode()}
    )
    page.get_by_role("button", name="Run").click()
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    expect(page.get_by_text("1 line skipped")).to_be_visible()
    actual = score_rows(cased, read_rows(data, "jsonl").rows, ("masks", "next"), "last")
    rows = list(csv.DictReader(io.StringIO(saved(page))))
    assert [float(row["is_next"]) for row in rows] == pytest.approx([one.is_next for one in actual], abs=1e-4)
    assert [float(row["original_rank"]) for row in rows] == [one.masks[0].original_rank for one in actual]
    follows = summarise_rows(actual).follows
    expect(page.locator("[data-testid=stMetricValue]").last).to_have_text(share(follows))
    page.keyboard.press("Escape")
    page.get_by_label("Containing").fill("DOG RAN")
    page.get_by_label("Containing").press("Enter")
    wait_for_link(page, "dataset.words", "DOG RAN")
    press_row(page, 0, "Open row 8 in")
    page.get_by_role("button", name="Open here").click()
    expect(page.get_by_role("heading", level=1, name="Predict")).to_be_visible()
    wait_for_link(page, "a", "A dog ran.")
    assert parameters(page)["mask"]
    open_page(page, "Dataset")
    expect(page.get_by_text("Read from mine.jsonl")).to_be_visible()
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()


def test_long_work_over_a_file_can_be_stopped(visit):
    page = visit("/?page=dataset&dataset.file=upload&dataset.ask=perplexity").page
    data = "\n".join("The cat sat on the mat and looked at the people of the town. " * 6 for _ in range(400))
    page.locator("input[type=file]").set_input_files(
        {"name": "long.txt", "mimeType": "text/plain", "buffer": data.encode()}
    )
    page.get_by_role("button", name="Run").click()
    # Streamlit's own button of that name, in the corner while a page runs, stops the page and not the work.
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text(re.compile("stopped"))).to_be_visible()
    expect(page.get_by_role("button", name="Start again")).to_be_visible()


def test_the_pairs_of_sentences_stand_below_their_map_in_a_narrow_window(visit):
    page = visit("/?page=sentence_similarity", viewport={"width": 1024, "height": 768}).page
    figure, table = page.locator(".js-plotly-plot"), page.locator(".stDataFrame")
    figure.wait_for()
    table.wait_for()
    upper, lower = figure.bounding_box(), table.bounding_box()
    assert upper["y"] + upper["height"] < lower["y"] and upper["width"] > 600
    page.set_viewport_size({"width": 1440, "height": 900})
    page.wait_for_function(
        "() => document.querySelector('.stDataFrame').getBoundingClientRect().top"
        " < document.querySelector('.js-plotly-plot').getBoundingClientRect().bottom"
    )
