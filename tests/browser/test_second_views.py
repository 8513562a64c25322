"""What pages show besides their first view is what the library computes, too: read in a real Chromium."""

import csv
import io
import re

import numpy as np
import pytest
from playwright.sync_api import expect

import bert_tf
from bert_tf.explain import (
    Ablation,
    ablate,
    compare,
    cosine_similarities,
    deeplift,
    gradient_x_input,
    hotflip,
    integrated_gradients,
    layerwise_relevance,
    lime,
    logit_lens,
    mask_target,
    occurrences,
    predict_variants,
    profile_heads,
    pseudo_likelihood,
    read_conllu,
    sense_separation,
    swapped,
    syntax_agreement,
    with_word,
)
from bert_tf.explain.attention.head_summary import summarise_heads
from bert_tf.explain.representations.embedding_tables import embedding_table
from bert_tf.plots.numbers import percent
from tests.browser.page_reading import (
    ASKED,
    FIGURE,
    NUMBERS,
    PAIR,
    TEXTS,
    numbers,
    point,
    press_head,
    saved,
    share,
    wait_for_link,
    wider_than_the_screen,
)
from ui.samples import word_senses
from ui.samples.concepts import OTHERS, sentences
from ui.samples.minimal_pairs import PAIRS
from ui.widgets.formatting import signed

OTHER = "The bunny ate a carrot."
TREE = "\n".join(
    f"{at}\t{word}\t_\t{kind}\t_\t_\t{head}\t{relation}\t_\t_"
    for at, (word, kind, head, relation) in enumerate(
        (("The", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sat", "VERB", 0, "root")), start=1
    )
)


def wait_for_numbers(page, figure, path, wanted):
    """Until a number of a figure is there: the figure of the view before may still stand."""
    page.wait_for_function(
        f"([at, wanted]) => Math.abs((({NUMBERS})(['{FIGURE}', at]){path} ?? NaN) - wanted) < 1e-4",
        arg=[figure, float(wanted)],
    )


@pytest.mark.parametrize("kind", ["word", "swap"])
def test_a_changed_text_is_asked(visit, bert, trace, kind):
    page = visit(
        ASKED + f"&page=counterfactuals&counterfactuals.kind={kind}&counterfactuals.word=a1&counterfactuals.with=dog"
    ).page
    bunny = next(word for word in trace.words() if word.text == "bunny")
    variant = swapped(bert, trace) if kind == "swap" else with_word(bert, trace, bunny, "dog")
    (outcome,) = predict_variants(bert, trace, [variant], 5)
    expect(page.locator(".gauge .left")).to_have_text(f"IsNext {100 * outcome.nsp.is_next:.1f}%")
    best = outcome.masks[0].predictions[0]
    expect(page.locator(".bars .word").first).to_have_text(best.token)
    assert page.locator(".bars .share").first.inner_text().endswith(f"→ {percent(best.probability)}")


def test_a_minimal_pair(visit, bert):
    page = visit("/?page=counterfactuals&counterfactuals.kind=pairs").page
    good, bad = (pseudo_likelihood(bert, text) for text in (PAIRS[0].good, PAIRS[0].bad))
    expect(page.get_by_text(f"The margin is {abs(good.total - bad.total):.2f} nats")).to_be_visible()
    drawn = numbers(page)[0]["x"]
    wanted = [float(one) for side in (good, bad) for one in side.log_probabilities if not np.isnan(one)]
    assert set(np.round(drawn, 3)) <= set(np.round(wanted, 3))


SCORES = {
    "integrated": integrated_gradients,
    "gradient": gradient_x_input,
    "deeplift": deeplift,
    "relevance": layerwise_relevance,
}


@pytest.mark.parametrize("method", SCORES)
def test_the_scores_of_the_words(visit, bert, trace, method):
    page = visit(ASKED + f"&page=saliency&saliency.method={method}").page
    actual = SCORES[method](bert, trace, mask_target(bert, trace))
    page.locator(".marks .word").first.wait_for()
    wanted = [one.score for one in actual.words]
    assert sorted(numbers(page)[0]["x"]) == pytest.approx(sorted(wanted), abs=2e-3)
    if method == "deeplift":
        expect(
            page.get_by_text(f"it gains {signed(actual.log_probability - actual.baseline_log_probability, 3)} nats")
        ).to_be_visible()
    if method == "relevance":
        expect(page.get_by_text(f"Its log-odds, {signed(actual.log_odds, 3)}, are")).to_be_visible()


def test_the_scores_from_several_references(visit, bert, trace):
    page = visit(ASKED + "&page=saliency&saliency.method=deeplift").page
    page.get_by_role("radio", name="Sentences").click()
    page.get_by_role("radio", name="4", exact=True).click()
    page.get_by_text("averaged over 4 sentences of the project").wait_for()
    actual = deeplift(bert, trace, mask_target(bert, trace), sentences(OTHERS)[:4])
    expect(
        page.get_by_text(f"it gains {signed(actual.log_probability - actual.baseline_log_probability, 3)} nats")
    ).to_be_visible()
    assert sorted(numbers(page)[0]["x"]) == pytest.approx(sorted(one.score for one in actual.words), abs=2e-3)


def test_the_weights_of_a_linear_model(visit, bert, trace):
    page = visit(ASKED + "&page=saliency&saliency.method=lime&saliency.samples=64").page
    actual = lime(bert, trace, mask_target(bert, trace), samples=64)
    expect(page.get_by_text(f"Weighted R² {actual.weighted_r2:.3f}")).to_be_visible()
    assert sorted(numbers(page)[0]["x"]) == pytest.approx(sorted(one.score for one in actual.words), abs=2e-3)
    tips = page.locator(".marks .word").evaluate_all("words => words.map((word) => word.dataset.tip)")
    for one in actual.words[-5:]:
        assert any(tip.startswith(f"{one.word.text}: {signed(one.score, 3)} nats") for tip in tips), (one, tips)
    expect(page.get_by_role("radio", name="64", exact=True)).to_be_checked()


def test_other_words_until_the_answer_is_another(visit, bert, trace):
    page = visit(ASKED + "&page=saliency&saliency.method=hotflip&saliency.flips=2").page
    actual = hotflip(bert, trace, mask_target(bert, trace), most=2)
    expect(page.get_by_role("heading", name=f"Which other word changes “{actual.target.label}”")).to_be_visible()
    steps = page.get_by_test_id("stMarkdown").locator("ol li")
    expect(steps).to_have_count(len(actual.applied))
    for number, one in enumerate(actual.applied):
        output = steps.nth(number)
        flip = f"{one.word.text} → {one.new}: {signed(one.change, 3)} nats (by the gradient {signed(one.estimate, 3)})"
        expect(output).to_contain_text(flip)
        expect(output).to_contain_text(f"{one.text_a} / {one.text_b}".replace(" the ", " [MASK] ", 1))
    read, slope = numbers(page)
    assert read["x"] == pytest.approx([one.change for one in actual.tried[:15]], abs=1e-3)
    assert slope["x"] == pytest.approx([one.estimate for one in actual.tried[:15]], abs=1e-3)
    first = actual.tried[0]
    word = page.locator(".marks .word", has_text=re.compile(rf"^{re.escape(first.word.text)}$")).first
    tip = word.evaluate("(word) => word.dataset.tip")
    assert tip.startswith(f"{first.word.text}: {first.new} instead: {signed(first.change, 3)} nats")
    assert not wider_than_the_screen(page)


def test_meaning_s_matrix_its_map_and_where_senses_part(visit, bert):
    page = visit("/?page=word_senses&word_senses.layer=2&word_senses.way=umap").page
    read = word_senses.read(word_senses.example("bank"), 100, 2000)
    actual = occurrences(bert, read.texts, "bank")
    labels = [read.senses[text] for text in actual.texts]
    order = sorted(range(len(labels)), key=lambda index: labels[index])
    cosines = cosine_similarities(actual.vectors[2][order])
    expect(page.locator(FIGURE)).to_have_count(4)
    assert numbers(page, 1)[0]["z"] == pytest.approx(cosines.ravel().tolist(), abs=1e-3)
    apart = sense_separation(actual.vectors, labels)
    assert numbers(page, 2)[0]["y"] == pytest.approx(apart.nearest.tolist(), abs=1e-4)
    # UMAP's layout hangs on the last bits of the vectors: how many points each sense has does not.
    drawn = {one["name"]: len(one["x"]) for one in numbers(page)}
    assert drawn == {label: labels.count(label) for label in set(labels)}


def test_the_table_of_positions(visit, bert):
    page = visit(PAIR + "&page=input_embeddings").page
    cosines = cosine_similarities(embedding_table(bert, "position"))
    expect(page.locator(FIGURE)).to_have_count(4)
    assert numbers(page, 2)[0]["z"] == pytest.approx(cosines[::4, ::4].ravel().tolist(), abs=2e-3)
    assert numbers(page, 3)[0]["y"][1] == pytest.approx(float(np.diagonal(cosines, 1).mean()), abs=1e-3)


def test_heads_over_a_file_and_a_treebank(visit, bert):
    page = visit("/?page=head_profiles&head_profiles.of=file").page
    texts = ["the cat sat", "a dog ran in London."]
    file = {"name": "texts.txt", "mimeType": "text/plain", "buffer": "\n".join(texts).encode()}
    with page.expect_response(lambda answer: "upload_file" in answer.url):
        page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_role("heading", name="All heads as a table")).to_be_visible()
    rows = list(csv.DictReader(io.StringIO(saved(page))))
    entropy = profile_heads(bert, [(text, None) for text in texts]).summary.entropy
    assert [float(row["entropy"]) for row in rows] == pytest.approx(entropy.ravel().tolist(), abs=1e-3)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Remove").or_(page.get_by_test_id("stFileUploaderDeleteBtn")).first.click()
    file = {"name": "tree.conllu", "mimeType": "text/plain", "buffer": f"{TREE}\n\n".encode()}
    with page.expect_response(lambda answer: "upload_file" in answer.url):
        page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_role("heading", name="Syntax")).to_be_visible()
    rows = list(csv.DictReader(io.StringIO(saved(page))))
    overall = syntax_agreement(bert, read_conllu([*TREE.splitlines(), ""])).overall
    wanted = np.maximum(overall.dependent_to_head, overall.head_to_dependent)
    assert [float(row["syntax"]) for row in rows] == pytest.approx(wanted.ravel().tolist(), abs=1e-3)


def test_two_models_beside_each_other(visit, bert, trace, server_home):
    page = visit(ASKED + "&page=side_by_side&with=tiny-uncased&depth=100").page
    other = bert_tf.load(server_home / "tiny-uncased")
    two = other.trace(*TEXTS, mask=["the"])
    actual = compare(trace, two, bert.tokenizer, other.tokenizer, 3, 2, top_k=5, across=True)
    (mask,) = actual.masks
    guesses = [*mask.predictions_a, *mask.predictions_b]
    expect(page.locator(".card .word")).to_have_text([one.token for one in guesses])
    expect(page.locator(".card .share")).to_have_text([percent(one.probability) for one in guesses])
    verdicts = [f"IsNext {100 * one.nsp.is_next:.1f}%" for one in (trace, two)]
    expect(page.locator(".gauge .left")).to_have_text(verdicts)
    apart = 100 * abs(trace.nsp.is_next - two.nsp.is_next)
    expect(page.get_by_text(f"P(IsNext) differs by {apart:.1f} percentage points.")).to_be_visible()
    # The table is a canvas, with its cells as text inside for screen readers.
    page.locator("[data-testid=stDataFrame]").first.scroll_into_view_if_needed()
    expect(page.get_by_test_id("glide-cell-1-0").first).to_have_text(guesses[0].token)
    assert float(page.get_by_test_id("glide-cell-4-0").first.text_content()) == pytest.approx(mask.divergence, abs=1e-4)
    row = next(csv.DictReader(io.StringIO(saved(page))))
    assert float(row["divergence_bits"]) == pytest.approx(mask.divergence, abs=1e-4)
    assert (row["answer_a"], row["answer_b"]) == (guesses[0].token, guesses[5].token)
    page.keyboard.press("Escape")
    expect(page.locator(f"{FIGURE} .hm")).to_have_count(2)
    for figure, weights in enumerate((trace.attentions[2], two.attentions[1])):
        drawn, wanted = numbers(page, figure)[0], weights.mean(axis=0, dtype="float32")
        assert len(drawn["x"]) == len(wanted) and drawn["z"] == pytest.approx(wanted.ravel().tolist(), abs=1e-4)


def test_switch_off_with_no_attention_to_a_token(visit, bert, trace):
    page = visit(ASKED + "&page=ablation").page
    page.get_by_role("combobox", name="No attention to").click()
    page.get_by_role("option", name=f"3: {trace.tokens[3]}").click()
    wait_for_link(page, "ablation.tokens", "3")
    effect = ablate(bert, trace, Ablation(tokens=(3,)), 1000, attention_shifts=True)
    before, after = ({one.id: one for one in actual[0].predictions} for actual in (effect.before, effect.after))
    expect(page.locator(".gauge .left")).to_have_text(f"IsNext {100 * effect.nsp_after.is_next:.1f}%")
    bars = page.locator(".bars .bar")
    for place, one in enumerate(list(after.values())[:5]):
        was = before[one.id].probability if one.id in before else 0.0
        expect(bars.nth(place).locator(".word")).to_have_text(one.token)
        expect(bars.nth(place).locator(".share")).to_have_text(f"{percent(was)} → {percent(one.probability)}")
    for layer, head in ((0, 1), (2, 3)):
        share = percent(effect.attention_shifts[layer, head])
        output = f"Layer {layer + 1}, head {head + 1}: {share} of its attention goes elsewhere"
        point(page, page.locator(".cells td[data-at]").nth(6 * layer + head), page.locator(".cells .hint"), output)


def test_compare_s_maps_and_how_widely_they_are_spread(visit, bert):
    page = visit(
        ASKED
        + f"&page=side_by_side&side_by_side.what=texts&side_by_side.a={OTHER.replace(' ', '+')}"
        + "&side_by_side.mask=a3&depth=100"
    ).page
    traces = bert.trace(*TEXTS, mask=["the"]), bert.trace(OTHER, "", mask=["a"])
    expect(page.locator(f"{FIGURE} .hm")).to_have_count(2)
    for figure, one in enumerate(traces):
        wanted = one.attentions[2].mean(axis=0, dtype="float32")
        assert numbers(page, figure)[0]["z"] == pytest.approx(wanted.ravel().tolist(), abs=1e-4)
    spread = [summarise_heads(one).entropy.mean(axis=1) for one in traces]
    for line, wanted in zip(numbers(page, 2), spread):
        assert line["y"] == pytest.approx(wanted.tolist(), abs=1e-3)


def test_compare_s_difference_and_layers(visit, bert):
    link = (
        "/?page=side_by_side&a=The+bunny+ate+the+carrot.&mask=a3&side_by_side.what=texts&side_by_side.mask=a3&depth=100"
    )
    page = visit(f"{link}&side_by_side.a={OTHER.replace(' ', '+')}&side_by_side.drawn=difference").page
    one, two = bert.trace(TEXTS[0], mask=["the"]), bert.trace(OTHER, mask=["a"])
    wanted = one.attentions[2].mean(axis=0) - two.attentions[2].mean(axis=0)
    expect(page.locator(f"{FIGURE} .hm")).to_have_count(1)
    assert numbers(page)[0]["z"] == pytest.approx(wanted.ravel().tolist(), abs=1e-4)
    page.get_by_role("radio", name="Logit lens").click()
    expect(page.get_by_role("heading", name="The likeliest word after each layer")).to_be_visible()
    lenses = [logit_lens(bert, one), logit_lens(bert, two)]
    wait_for_numbers(page, 0, "[0]?.y?.at(-1)", lenses[0].answer_probabilities[0, -1])
    for line, lens in zip(numbers(page), lenses):
        assert line["y"] == pytest.approx(lens.answer_probabilities[0].tolist(), abs=1e-4)


def test_the_model_view_s_maps_are_those_of_all_heads(visit, trace):
    page = visit(ASKED + "&page=model_view&model_view.as=maps").page
    # A press on a place of the sheet opens the head that is drawn there.
    press_head(page, 2, 3)
    expect(page.get_by_role("heading", name="Layer 2, head 3")).to_be_visible()
    hint = page.locator(".lines .hint")
    point(page, page.locator(".lines .left .token").nth(1), hint, re.compile("looks most at"))
    assert share(hint.inner_text()) == pytest.approx(float(trace.attentions[1, 2, 1].max()), abs=6e-3)
