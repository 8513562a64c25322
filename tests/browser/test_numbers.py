"""What stands on the screen, page by page, is what the library computes: read in a real Chromium."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from bert_tf.explain import (
    Ablation,
    Receiver,
    ablate,
    contributions,
    every_head,
    left_context,
    logit_lens,
    mask_target,
    occlusion,
    patch_heads,
    patch_paths,
    patch_states,
    right_context,
    sweep,
    without_each_word,
)
from bert_tf.explain import predict_variants as ask_variants
from bert_tf.explain.models.architecture import layer_activations, parts
from bert_tf.explain.models.architecture_table import architecture_rows
from bert_tf.explain.models.snapshot_series import SnapshotSeries
from bert_tf.inference.predictions import fill_mask
from bert_tf.plots.models.architecture import MOST_UNITS
from bert_tf.plots.numbers import percent
from bert_tf.plots.theme import ramp
from bert_tf.training.run_folder import find_runs, read_run
from tests.browser.page_reading import (
    ASKED,
    FIGURE,
    NUMBERS,
    PAIR,
    TEXTS,
    numbers,
    point,
    saved,
    share,
    wait_for_link,
)
from ui.shell.limits import ROOT
from ui.widgets.formatting import signed


def words_and_shares(answers):
    """What a page writes of the likeliest words of masks, card after card."""
    actual = [one for answer in answers for one in answer.predictions]
    return [one.token for one in actual], [percent(one.probability) for one in actual]


def expect_cards(page, answers):
    words, shares = words_and_shares(answers)
    expect(page.locator(".card .word")).to_have_text(words)
    expect(page.locator(".card .share")).to_have_text(shares)


def test_predict(visit, bert, trace):
    page = visit(ASKED).page
    expect_cards(page, fill_mask(trace, bert.tokenizer, 5))
    expect(page.locator(".gauge .left")).to_have_text(f"IsNext {100 * trace.nsp.is_next:.1f}%")


def test_the_attention_heatmap(visit, trace):
    page = visit(ASKED + "&page=all_heads&layer=2&head=3").page
    page.get_by_role("radio", name="Heatmap").click()
    page.locator(f"{FIGURE} .hm").first.wait_for()
    assert numbers(page)[0]["z"] == pytest.approx(trace.attentions[1, 2].ravel().tolist(), abs=1e-5)
    # Its colour scale, in the figure's own colours.
    expect(page.locator(".scale .marks span")).to_have_text(["0", f"{trace.attentions[1, 2].max():.2f}"])
    drawn = page.locator(".scale .strip").evaluate("(strip) => getComputedStyle(strip).backgroundImage")
    assert drawn.count("rgb") == len(ramp()) and drawn.startswith("linear-gradient(to right")


def test_the_model_view_s_open_head(visit, trace):
    page = visit(ASKED + "&page=model_view&layer=3&head=2&model_view.zoom=1").page
    for row in (1, 6):
        hint = page.locator(".lines .hint")
        output = re.compile(f"“{re.escape(trace.tokens[row])}” looks most at")
        point(page, page.locator(".lines .left .token").nth(row), hint, output)
        actual = share(hint.inner_text())
        assert actual == pytest.approx(float(trace.attentions[2, 1, row].max()), abs=6e-3)


def test_layer_by_layer(visit, bert, trace):
    page = visit(ASKED + "&page=logit_lens").page
    lens = logit_lens(bert, trace)
    cells = page.locator(".cells td[data-at]")
    expect(cells).to_have_text([best[0] for best in lens.predicted_tokens[0]])
    for layer in range(len(lens.predicted_tokens[0])):
        first = f"{lens.predicted_tokens[0][layer][0]} {percent(lens.probabilities[0, layer, 0])}"
        point(page, cells.nth(layer), page.locator(".cells .hint"), re.compile(re.escape(first)))
    ranks = numbers(page)[0]["y"]
    assert ranks == lens.answer_ranks[0].tolist()


def test_switch_off(visit, bert, trace):
    page = visit(ASKED + "&page=ablation&ablation.off=1-2_3-x").page
    effect = ablate(bert, trace, Ablation(heads=((0, 1),), layers=(2,)), top_k=1000)
    was = {one.id: one.probability for one in effect.before[0].predictions}
    after = effect.after[0].predictions[0]
    expect(page.locator(".bars .share").first).to_have_text(
        f"{percent(was.get(after.id, 0.0))} → {percent(after.probability)}"
    )
    expect(page.locator(".gauge .left")).to_have_text(f"IsNext {100 * effect.nsp_after.is_next:.1f}%")


def test_the_sweep(visit, bert, trace):
    page = visit(ASKED + "&page=ablation&ablation.colour=effect").page
    expect(page.get_by_role("heading", name="The strongest parts")).to_be_visible()
    lost = -sweep(bert, trace, every_head(bert.config)).log_probability_changes.mean(axis=1)
    assert sorted(numbers(page)[0]["x"]) == pytest.approx(sorted(lost.tolist()), abs=1e-4)
    expect(page.locator(".cells .low")).to_have_text("opposes the answer")
    cell = page.locator(".cells td[data-at]").nth(7)  # layer 2, head 2: four heads and two more a layer
    point(page, cell, page.locator(".cells .hint"), re.compile(re.escape(f"{signed(lost[5], 3)} nats")))


def test_which_words(visit, bert, trace):
    page = visit(ASKED + "&page=saliency&saliency.method=occlusion").page
    actual = occlusion(bert, trace, mask_target(bert, trace), unit="word")
    expect(page.locator(".marks .word")).to_have_count(10)
    tips = page.locator(".marks .word").evaluate_all("words => words.map((word) => word.dataset.tip)")
    wanted = {one.word.text: one.score for one in actual.words if one.word.source == "b"}
    for word, score in wanted.items():
        assert any(tip.startswith(f"{word}: {signed(score, 3)} nats") for tip in tips), (word, score, tips)
    assert sorted(numbers(page)[0]["x"]) == pytest.approx(sorted(one.score for one in actual.words), abs=1e-4)


def test_patching(visit, bert):
    other = "The bunny ate a carrot."
    page = visit(PAIR + "&mask=a2&page=patching&patching.a=" + other.replace(" ", "+")).page
    clean, corrupted = (bert.trace(text, TEXTS[1], mask=["ate"]) for text in (TEXTS[0], other))
    actual = patch_states(bert, clean, corrupted, mask_target(bert, clean))
    expect(page.locator(f"{FIGURE} .hm")).to_have_count(1)
    assert numbers(page)[0]["z"] == pytest.approx(np.clip(actual.recovered.T, -1, 1).ravel().tolist(), abs=1e-3)


def test_patched_heads(visit, bert):
    other = "The bunny ate a carrot."
    link = "&mask=a2&page=patching&patching.a=" + other.replace(" ", "+")
    page = visit(PAIR + link).page
    expect(page.locator(f"{FIGURE} .hm")).to_have_count(1)
    page.get_by_role("radio", name="What each head adds").click()
    expect(page.get_by_role("heading", name="Layer by head")).to_be_visible()
    clean, corrupted = (bert.trace(text, TEXTS[1], mask=["ate"]) for text in (TEXTS[0], other))
    actual = patch_heads(bert, clean, corrupted, mask_target(bert, clean))
    page.wait_for_function(f"() => document.querySelector('{FIGURE}')?.data?.[0]?.y?.length === 3")
    wanted = np.clip(actual.recovered, -1, 1).ravel().tolist()
    assert numbers(page)[0]["z"] == pytest.approx(wanted, abs=1e-3)
    wait_for_link(page, "patching.part", "head")
    # Without a pointer: the map as a table.
    page.get_by_role("button", name="The numbers as a table").press("Enter")
    messages = page.get_by_role("figure", name="What each patch brings back").locator("tbody td")
    expect(messages).to_have_count(actual.recovered.size)
    shares = [float(text.rstrip("%").replace("−", "-")) for text in messages.all_inner_texts()]
    assert shares == pytest.approx((100 * actual.recovered).ravel().tolist(), abs=0.2)


def test_paths(visit, bert):
    other = "The bunny ate a carrot."
    link = "&mask=a2&page=patching&patching.a=" + other.replace(" ", "+")
    page = visit(PAIR + link).page
    expect(page.locator(f"{FIGURE} .hm")).to_have_count(1)
    page.get_by_role("radio", name="One path at a time").click()
    clean, corrupted = (bert.trace(text, TEXTS[1], mask=["ate"]) for text in (TEXTS[0], other))
    asked = bert, clean, corrupted, mask_target(bert, clean)
    cells = page.locator(".cells td[data-at]")

    def rounded(actual):
        layers = int(actual.has_path.any(axis=1).sum())
        expect(cells).to_have_count(5 * layers)
        tips = cells.evaluate_all("cells => cells.map((cell) => cell.getAttribute('aria-label'))")
        shares = [float(re.search(r"back (\S+)%", tip)[1].replace("−", "-")) for tip in tips]
        assert shares == pytest.approx((100 * actual.recovered[:layers]).ravel().tolist(), abs=0.06)

    rounded(patch_paths(*asked))
    expect(page.get_by_text("embeddings alone")).to_be_visible()
    cells.nth(5 * 2 + 1).click()
    wait_for_link(page, "patching.sender", "3-2")
    page.get_by_role("button", name="Paths into its values").click()
    wait_for_link(page, "patching.into", "values")
    expect(page.get_by_text("all that enters the values of layer 3, head 2")).to_be_visible()
    rounded(patch_paths(*asked, Receiver("values", 2, 1)))


def test_contributions(visit, bert, trace):
    page = visit(ASKED + "&page=contributions").page
    actual = contributions(bert, trace, mask_target(bert, trace))
    expect(page.get_by_text(f"The parts add up to {signed(actual.total)}")).to_be_visible()
    drawn = sorted(numbers(page)[0]["x"])
    assert drawn == pytest.approx(sorted(actual.heads.ravel().tolist()), abs=1e-4)
    cell = page.locator(".cells td[data-at]").nth(8)  # layer 2, head 4: four heads and a block a layer
    output = f"Layer 2, head 4: {signed(actual.heads[1, 3], 3)} nats of log-odds"
    point(page, cell, page.locator(".cells .hint"), re.compile(re.escape(output)))
    cell.click()
    expect(page.get_by_test_id("stMarkdown").get_by_text(output)).to_be_visible()
    wait_for_link(page, "contributions.part", "2-4")
    page.get_by_role("button", name="Switch it off").click()
    wait_for_link(page, "ablation.off", "2-4")
    effect = ablate(bert, trace, Ablation(heads=((1, 3),)), top_k=1000)
    after = effect.after[0].predictions[0]
    was = {one.id: one.probability for one in effect.before[0].predictions}
    expect(page.locator(".bars .share").first).to_have_text(
        f"{percent(was.get(after.id, 0.0))} → {percent(after.probability)}"
    )


def test_what_if(visit, bert, trace):
    page = visit(ASKED + "&page=counterfactuals").page
    variants = [side(bert, trace, trace.masks[0]) for side in (left_context, right_context)]
    sides = [outcome.masks[0] for outcome in ask_variants(bert, trace, variants, 5)]
    expect_cards(page, [*fill_mask(trace, bert.tokenizer, 5), *sides])
    page.get_by_role("radio", name="One word less").click()
    expect(page.get_by_role("heading", name="Without each word")).to_be_visible()
    page.locator(f"{FIGURE} .bars .point").first.wait_for()
    wanted = [outcome.divergences.mean() for _, outcome in without_each_word(bert, trace, 1)]
    assert sorted(numbers(page)[0]["x"]) == pytest.approx(sorted(map(float, wanted)), abs=1e-4)


def test_architecture(visit, bert, trace):
    page = visit(ASKED + "&page=architecture&architecture.open=feed_forward&architecture.layer=2").page
    wanted = layer_activations(bert, trace, 1)["feed_forward"][:, :MOST_UNITS]
    expect(page.get_by_role("heading", name="Feed-forward, layer 2")).to_be_visible()
    expect(page.locator(FIGURE)).to_have_count(2)  # what passes through the box, and below it the sizes
    assert numbers(page)[0]["z"] == pytest.approx(wanted.ravel().tolist(), abs=2e-4)
    sizes = {part.name: part.parameters for part in parts(bert.model, trace.length, 1)}
    for name in ("embeddings", "feed_forward", "mlm"):
        output = page.locator(f".tower .box[data-name={name}] .size").inner_text()
        assert output == f"{sizes[name] / 1e3:.1f} k", name


def test_time_lapse_and_curves(visit):
    run = read_run(find_runs(ROOT / "assets" / "training")[0])
    text = "He was born in London."
    page = visit("/?page=time_lapse&b=&mask=a2&a=" + text.replace(" ", "+")).page
    series = SnapshotSeries(run.snapshots)
    snapshot_traces = series.snapshot_traces(text, "", mask=["born"])
    expect_cards(page, fill_mask(snapshot_traces[-1].trace, series.tokenizer, 5))
    page.get_by_role("button", name="Training curves").or_(
        page.get_by_role("link", name="Training curves")
    ).first.click()
    page.get_by_role("heading", name="Training curves").wait_for()
    last = run.records[-1]
    # The figures of the page before go one by one.
    page.wait_for_function(
        f"""(wanted) => document.querySelectorAll('{FIGURE}').length === 3
            && Math.abs(({NUMBERS})(['{FIGURE}', 1])[0]?.y?.at(-1) - wanted) < 1e-6""",
        arg=last["mlm_accuracy"],
    )
    expect(page.get_by_text(f"loss {last['loss']:.2f}")).to_be_visible()


def test_the_family_s_sizes(visit):
    page = visit("/?page=architectures").page
    expect(page.locator(FIGURE)).to_have_count(2)
    page.locator(f"{FIGURE} .bars .point").first.wait_for()
    page.locator(f"{FIGURE} .scatterlayer .point").first.wait_for()
    rows = architecture_rows(128)
    drawn = {one["name"]: one["x"] for one in numbers(page, 0)}
    assert drawn == {part: [row.parts[part] for row in rows] for part in ("embeddings", "encoder", "output heads")}
    (work,) = numbers(page, 1)
    assert work["x"] == pytest.approx([row.flops / row.tokens for row in rows])
    table = json.loads(saved(page, "JSON"))
    (base,) = [row for row in table["sizes"] if (row["architecture"], row["size"]) == ("BERT", "base")]
    assert base["parameters"]["total"] == 110_106_428


def test_the_models(visit, bert):
    page = visit("/?page=models").page
    config = bert.config
    facts = (
        f"tiny-cased · {config.num_hidden_layers} layers of {config.hidden_size}, {config.num_attention_heads} heads · "
        f"{sum(int(np.prod(one.shape)) for one in bert.model.weights) / 1e6:.1f} million parameters"
    )
    expect(page.get_by_text(facts)).to_be_visible()
    expect(page.get_by_text("predicts masked words and next sentence").first).to_be_visible()
    page.get_by_text("Model card").first.click()
    card = page.get_by_test_id("stExpander").filter(has_text="Model card").first
    expect(card.get_by_test_id("stExpanderDetails")).to_be_visible()
