"""The pages that ask why, driven without a browser; what they show is compared with the library's numbers."""

import json
import re
import threading

import numpy as np
import pytest

from bert_tf.plots.numbers import percent
from pages.explain import likely_words
from tests.app.conftest import LIMITS, save_tiny, use_models_in
from tests.app.page_reading import (
    PATIENCE,
    component,
    page_text,
    param,
    run_until_done,
)
from ui.samples.concepts import OTHERS, sentences
from ui.widgets.formatting import number, signed

PAIR = {"a": "The bunny ate the carrot.", "b": "It was good."}
WHY = ("logit_lens", "ablation", "contributions", "saliency", "patching", "counterfactuals")


@pytest.fixture(scope="module")
def bert(explorer_home):
    import bert_tf

    return bert_tf.load(explorer_home / "tiny-cased")


def figure(app, index=0):
    return json.loads(app.get("plotly_chart")[index].proto.spec)


def heat(app, index=0):
    return figure(app, index)["data"][0]


def mask_position(bert, trace_tokens, word):
    return trace_tokens.index(word)


@pytest.mark.parametrize("page", WHY)
def test_a_page_opens_on_an_empty_link_and_says_what_it_shows(open_app, page):
    app = run_until_done(open_app(page=page))
    assert app.title and len(app.caption) >= 1


@pytest.mark.parametrize("page", WHY)
def test_without_a_question_a_page_says_how_to_ask_one(open_app, page):
    app = run_until_done(open_app(page=page, a="The bunny ate the carrot."))
    # The lens reads any token; all others need a mask or a pair.
    assert page == "logit_lens" or "Press a word above to hide it" in page_text(app)


@pytest.mark.parametrize("page", WHY)
def test_odd_settings_of_a_link_are_passed_over(open_app, page):
    odd = {
        "off": "99-1.f_x-_1-",
        "tokens": "7.x.99999",
        "of": "zz",
        "at": "9999",
        "steps": "3",
        "kind": "??",
        "word": "b99",
    }
    run_until_done(open_app(page=page, **PAIR, mask="a1", **{f"{page}.{name}": value for name, value in odd.items()}))


# Logit lens


def test_the_lens_shows_the_library_s_words_and_where_the_answer_settles(open_app, bert):
    app = run_until_done(open_app(page="logit_lens", **PAIR, mask="a3"))
    cells = component(app, "cells")
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    from bert_tf.explain import logit_lens

    lens = logit_lens(bert, trace)
    assert cells["texts"] == [best[0] for line in lens.predicted_tokens for best in line]
    assert np.allclose(cells["shades"], lens.probabilities[:, :, 0].ravel(), atol=1e-3)
    assert [index for index, edge in enumerate(cells["edges"]) if edge] == [int(lens.stable_from[0])]


def test_all_tokens_can_be_read_and_one_be_opened(open_app, bert):
    app = run_until_done(
        open_app(
            page="logit_lens",
            **PAIR,
            mask="a3",
            **{"logit_lens.rows": "all", "logit_lens.at": "2", "logit_lens.layer": "1"},
        )
    )
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    cells = component(app, "cells")
    assert len(cells["rows"]) == trace.length and cells["picked"] == 2 * 4 + 1
    assert f"Token 2: {trace.tokens[2]}" in page_text(app) and "Predictions after layer 1" in page_text(app)


def test_a_word_can_be_followed_and_one_that_is_none_is_refused(open_app, bert):
    from bert_tf.explain import logit_lens

    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    word = bert.tokenizer.vocab.index("carrot") if "carrot" in bert.tokenizer.vocab else None
    name = "good" if word is None else "carrot"
    app = run_until_done(open_app(page="logit_lens", **PAIR, mask="a3", **{"logit_lens.follow": name}))
    lens = logit_lens(bert, trace, answers=[bert.tokenizer.vocab.index(name)])
    assert np.array_equal(_numbers(figure(app)["data"][0]["y"]), lens.answer_ranks[0])
    app = run_until_done(open_app(page="logit_lens", **PAIR, mask="a3", **{"logit_lens.follow": "zzzqqq"}))
    assert "no token of this model" in page_text(app)


def _numbers(values):
    """A figure's numbers, which Plotly writes as a list or as bytes in base64."""
    if isinstance(values, dict):
        import base64

        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return np.array(values)


def test_a_long_text_is_read_through_a_window(open_app):
    app = run_until_done(open_app(page="logit_lens", a="The bunny ate . " * 30, **{"logit_lens.rows": "all"}))
    assert len(component(app, "cells")["rows"]) == 64
    app.slider(key="w_logit_lens_start").set_value(5).run()
    assert param(app, "logit_lens.start") == "5"


# Ablation


def test_what_is_switched_off_changes_the_answer_as_the_library_says(open_app, bert):
    from bert_tf.explain import Ablation, ablate

    app = run_until_done(
        open_app(page="ablation", **PAIR, mask="a3", **{"ablation.off": "1-2.f_3-x", "ablation.tokens": "5"})
    )
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    off = Ablation(heads=((0, 1),), layers=(2,), feed_forward=(0,), tokens=(5,))
    effect = ablate(bert, trace, off, top_k=1000, attention_shifts=True)
    card = component(app, "bars")["cards"][0]
    first = effect.after[0].predictions[0]
    assert (card["predictions"][0]["text"], card["predictions"][0]["p"]) == (
        first.token,
        pytest.approx(first.probability),
    )
    was = {one.id: one.probability for one in effect.before[0].predictions}
    assert card["predictions"][0]["was"] == pytest.approx(was.get(first.id, 0.0), abs=1e-6)
    assert component(app, "gauge")["is_next"] == pytest.approx(effect.nsp_after.is_next, abs=1e-6)
    cells = component(app, "cells")
    assert [index for index, off in enumerate(cells["off"]) if off] == [1, 4, 2 * 6 + 5]
    assert cells["shades"][6] == pytest.approx(np.sqrt(effect.attention_shifts[1, 0]), abs=1e-3)


def test_everything_can_be_switched_on_again(open_app):
    app = run_until_done(
        open_app(page="ablation", **PAIR, mask="a3", **{"ablation.off": "1-2", "ablation.tokens": "5"})
    )
    app.button(key="w_ablation_reset").click().run()
    assert param(app, "ablation.off") is None and param(app, "ablation.tokens") is None
    assert not any(component(app, "cells")["off"])


def test_the_sweep_ranks_the_parts_as_the_library_does(open_app, bert):
    from bert_tf.explain import every_head, sweep

    app = run_until_done(open_app(page="ablation", **PAIR, mask="a3", **{"ablation.colour": "effect"}))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    actual = sweep(bert, trace, every_head(bert.config))
    lost = -actual.log_probability_changes.mean(axis=1)
    bars = heat(app)
    named = [f"layer {layer}, head {head}" for layer in (1, 2, 3) for head in (1, 2, 3, 4)]
    order = [named.index(name.rstrip("\u200b")) for name in bars["y"]]
    assert np.allclose(_numbers(bars["x"]), lost[order], atol=1e-5)
    # The greatest first, up to what the rounding of another batch changes.
    assert (np.diff(np.abs(lost[order])) <= 2e-5).all()
    heads = np.array(component(app, "cells")["shades"]).reshape(3, 6)[:, :4]
    assert np.allclose(heads, 0.5 + 0.5 * lost.reshape(3, 4) / np.abs(lost).max(), atol=2e-3)


def test_effects_on_the_next_sentence_are_those_of_its_head(open_app, bert):
    from bert_tf.explain import every_layer, sweep

    app = run_until_done(
        open_app(
            page="ablation",
            **PAIR,
            mask="a3",
            **{"ablation.colour": "effect", "ablation.on": "next", "ablation.kind": "blocks"},
        )
    )
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    sign = -1 if trace.nsp.is_next >= 0.5 else 1
    wanted = sign * sweep(bert, trace, every_layer(bert.config)).nsp_changes
    on_page = dict(zip(heat(app)["y"], _numbers(heat(app)["x"])))
    assert np.allclose([on_page[f"layer {index + 1}, the whole layer"] for index in range(3)], wanted, atol=1e-5)


# Contributions


def test_the_parts_shares_are_the_library_s(open_app, bert):
    from bert_tf.explain import contributions, mask_target

    app = run_until_done(open_app(page="contributions", **PAIR, mask="a3", **{"contributions.part": "2-f"}))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    actual = contributions(bert, trace, mask_target(bert, trace))
    cells = component(app, "cells")
    shares = np.column_stack(
        [actual.heads / np.abs(actual.heads).max(), actual.feed_forward / np.abs(actual.feed_forward).max()]
    )
    assert np.allclose(np.array(cells["shades"]).reshape(3, 5), 0.5 + 0.5 * shares, atol=2e-3)
    assert (
        cells["tips"][7] == f"Layer 2, head 3: {signed(actual.heads[1, 2], 3)} nats of log-odds"
        and cells["picked"] == 9
    )
    output = page_text(app)
    assert f"The parts add up to {signed(actual.total)} (heads {signed(actual.heads.sum())}" in output
    assert f"the input {signed(actual.input)}, biases {signed(actual.biases)})" in output
    assert f"Layer 2, the feed-forward block: {signed(actual.feed_forward[1], 3)} nats" in output
    bars = heat(app)
    assert np.allclose(_numbers(bars["x"]), sorted(actual.heads.ravel(), key=lambda one: -abs(one)), atol=1e-5)
    app.segmented_control(key="w_contributions_kind").set_value("blocks").run()
    bars = heat(run_until_done(app))
    on_page = dict(zip(bars["y"], _numbers(bars["x"])))
    wanted = {f"layer {number}, feed-forward": share for number, share in enumerate(actual.feed_forward, start=1)}
    assert on_page == pytest.approx(wanted | {"the input": actual.input, "biases": actual.biases}, abs=1e-5)


def test_a_part_leads_to_where_it_looks_and_to_the_answer_without_it(open_app):
    link = {"page": "contributions", **PAIR, "mask": "a3"}
    app = run_until_done(open_app(**link, **{"contributions.part": "2-3"}))
    app.button(key="w_contributions_look").click().run()
    assert (param(app, "page"), param(app, "layer"), param(app, "head")) == ("all_heads", "2", "3")
    app = run_until_done(open_app(**link, **{"contributions.part": "2-f"}))
    assert "w_contributions_look" not in [one.key for one in app.button]  # a block looks nowhere
    app.button(key="w_contributions_off").click().run()
    assert (param(app, "page"), param(app, "ablation.off")) == ("ablation", "2-f")
    assert component(run_until_done(app), "cells")["off"][1 * 6 + 4]


def test_contributions_to_the_verdict_on_a_pair_are_told_as_log_odds(open_app, bert):
    from bert_tf.explain import contributions, next_sentence_target

    link = {"contributions.of": "next", "contributions.follows": "NotNext"}
    app = run_until_done(open_app(page="contributions", **PAIR, mask="a3", **link))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    actual = contributions(bert, trace, next_sentence_target(bert, trace, False))
    odds = np.log(trace.nsp.not_next / trace.nsp.is_next)
    assert actual.score == pytest.approx(odds, abs=1e-4)
    assert f"**NotNext** has {100 * trace.nsp.not_next:.1f}%, log-odds of {signed(odds)}" in page_text(app)
    assert component(app, "cells")["tips"][0] == f"Layer 1, head 1: {signed(actual.heads[0, 0], 3)} nats of log-odds"


def test_contributions_are_worked_out_beside_the_page(open_app, monkeypatch):
    from bert_tf.runtime.layer_steps import LayerSteps

    go, whole = threading.Event(), LayerSteps.odds_gradient

    def slow(*arguments):
        assert go.wait(PATIENCE)
        return whole(*arguments)

    monkeypatch.setattr(LayerSteps, "odds_gradient", slow)
    app = open_app(page="contributions", **PAIR, mask="a3")
    try:
        assert app.button(key="w_stop_contributions").label == "Stop" and "The parts add up to" not in page_text(app)
    finally:
        go.set()
    assert "The parts add up to" in page_text(run_until_done(app))


def test_what_speaks_for_the_only_class_is_refused_in_words(open_app, monkeypatch):
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type
    from bert_tf.inference.hooked_model import HookedModel
    from ui.session.model_store import shared_model

    bert = shared_model("tiny-cased").bert
    settings = TaskSettings("classify", ("good",))
    task = TaskModel(settings, network_over(bert.model, task_type("classify"), settings), bert.tokenizer, bert.runtime)
    monkeypatch.setattr(bert, "task", task)
    monkeypatch.setitem(vars(bert), "_hooked", HookedModel(bert))
    monkeypatch.setitem(vars(bert), "_steps", HookedModel(bert))
    app = run_until_done(open_app(page="contributions", a="It was good."))
    assert "“good” is the only class" in page_text(app) and component(app, "cells") is None
    app = run_until_done(open_app(page="saliency", a="It was good.", **{"saliency.method": "lrp"}))
    assert "“good” is the only class" in page_text(app) and component(app, "marks") is None
    # Nor is there a difference that paths could bring back a share of.
    app = run_until_done(
        open_app(page="patching", a="It was good.", **{"patching.a": "It was bad.", "patching.part": "path"})
    )
    assert "nearly the same" in page_text(app) and "embeddings alone brings back – of the difference" in page_text(app)
    cells = component(app, "cells")
    assert set(cells["shades"]) == {None} and all(tip.endswith("brings back –") for tip in cells["tips"])


# Saliency


def test_several_references_are_the_projects_sentences(open_app, bert):
    from bert_tf.explain import deeplift, mask_target

    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **{"saliency.method": "deeplift"}))
    app.button_group(key="w_saliency.from").set_value("sentences").run()
    app.button_group(key="w_saliency_references").set_value(4).run()
    app = run_until_done(app)
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    actual = deeplift(bert, trace, mask_target(bert, trace), sentences(OTHERS)[:4])
    assert np.allclose(app.dataframe[0].value["score"], [one.score for one in actual.words], rtol=1e-2, atol=1e-6)
    output = page_text(app)
    assert "a text of another sentence's tokens, averaged over 4 sentences of the project (DeepLiftShap)" in output
    assert "the scores add up to the same." in output
    assert f"it gains {signed(actual.log_probability - actual.baseline_log_probability, 3)} nats" in output
    # Integrated gradients have one start.
    app.button_group(key="w_saliency_method").set_value("integrated-gradients").run()
    assert run_until_done(app).button_group(key="w_saliency.from").value == "[MASK]"


@pytest.mark.parametrize(
    "method",
    ["integrated-gradients", "gradient-x-input", "smoothgrad", "deeplift", "lrp", "occlusion", "lime"],
)
def test_the_words_carry_the_library_s_scores(open_app, bert, method):
    from bert_tf.explain import (
        deeplift,
        gradient_x_input,
        integrated_gradients,
        layerwise_relevance,
        lime,
        mask_target,
        occlusion,
        smoothgrad,
    )

    link = {"saliency.method": method, "saliency.steps": "8", "saliency.noise": "0.02", "saliency.samples": "64"}
    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **link))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    target = mask_target(bert, trace)
    actual = {
        "integrated-gradients": lambda: integrated_gradients(bert, trace, target, steps=8),
        "gradient-x-input": lambda: gradient_x_input(bert, trace, target),
        "smoothgrad": lambda: smoothgrad(bert, trace, target, copies=8, noise=0.02),
        "deeplift": lambda: deeplift(bert, trace, target),
        "lrp": lambda: layerwise_relevance(bert, trace, target),
        "occlusion": lambda: occlusion(bert, trace, target, unit="word"),
        "lime": lambda: lime(bert, trace, target, samples=64),
    }[method]()
    assert f"“{target.label}”" in page_text(app).replace("\\", "")
    table = app.dataframe[0].value
    assert list(table["word"]) == [one.word.text for one in actual.words]
    assert np.allclose(table["score"], [one.score for one in actual.words], rtol=1e-2, atol=1e-6)
    assert ("convergence delta" in page_text(app)) == (method == "integrated-gradients")
    assert ("With the noise" in page_text(app)) == (method == "smoothgrad")
    assert ("the scores add up to the same." in page_text(app)) == (method == "deeplift")
    assert (method == "lime") == ("Weighted R²" in page_text(app))
    if method == "lrp":
        words = sum(one.score for one in actual.words)
        output = (
            f"Its log-odds, {signed(actual.log_odds, 3)}, are the sum of {signed(words, 3)} from the words here,"
            f" {signed(actual.scores.sum() - words, 3)} from special tokens, {signed(actual.rest['places'], 3)} from"
            f" positions and segments and {signed(actual.rest['biases'], 3)} from biases;"
            f" {signed(actual.rest['spread'], 3)} comes"
        )
        assert output in page_text(app) and "Score, nats of log-odds" in str(app.dataframe[0].proto.columns)
    if method == "lime":
        assert "fitted to 64 texts with random words replaced by [MASK]" in page_text(app)
        assert f"Weighted R² {number(actual.weighted_r2, 3)} on texts that it was not fitted to" in page_text(app)
        assert ("so these scores mean little. Take more samples" in page_text(app)) == (actual.weighted_r2 < 0.3)
    parts = component(app, "marks")["a"]
    assert "".join(part["text"] for part in parts) == PAIR["a"]
    assert [part["text"] for part in parts if part.get("asked")] == ["the"]


def test_the_next_sentence_and_any_token_can_be_explained(open_app, bert):
    from bert_tf.explain import next_sentence_target, occlusion

    link = {"saliency.method": "occlusion", "saliency.of": "next", "saliency.follows": "NotNext"}
    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **link))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    actual = occlusion(bert, trace, next_sentence_target(bert, trace, False), unit="word")
    assert np.allclose(app.dataframe[0].value["score"], [one.score for one in actual.words], atol=1e-4)
    app = run_until_done(
        open_app(
            page="saliency", **PAIR, mask="a3", **{"saliency.method": "gradient-x-input", "saliency.token": "good"}
        )
    )
    assert "supports “good”" in page_text(app)
    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **{"saliency.token": "zzzqqq"}))
    assert "no token of this model" in page_text(app)


def test_text_of_the_visitor_reaches_the_marks_unchanged(open_app):
    evil = "<b>bold</b> & [MASK]"
    app = run_until_done(open_app(page="saliency", a=evil, **{"saliency.method": "gradient-x-input"}))
    assert "".join(part["text"] for part in component(app, "marks")["a"]) == evil


def test_so_much_noise_that_the_answer_is_gone_is_told(open_app, bert, monkeypatch):
    from pages.explain import saliency

    link = {"saliency.method": "smoothgrad", "saliency.steps": "8"}
    assert "hides the answer" not in page_text(run_until_done(open_app(page="saliency", **PAIR, mask="a3", **link)))
    monkeypatch.setattr(saliency, "_HIDDEN_BY_NOISE", -100)
    assert "hides the answer" in page_text(run_until_done(open_app(page="saliency", **PAIR, mask="a3", **link)))


def test_weights_that_foretell_nothing_are_called_so():
    from pages.explain.saliency import _fitted

    assert "mean little" not in _fitted(0.3)
    for fit in (0.29, -1.5):
        assert f"Weighted R² {number(fit, 3)}" in _fitted(fit) and "mean little. Take more samples" in _fitted(fit)


def test_words_go_until_the_answer_would_change(open_app, bert):
    from bert_tf.explain import mask_target, reduce_input

    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **{"saliency.method": "input-reduction"}))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    actual = reduce_input(bert, trace, mask_target(bert, trace))
    assert actual.removed and f"{len(actual.remaining)} stay" in page_text(app)
    table = app.dataframe[0].value
    assert list(table["word"]) == [one.word.text for one in actual.removed]
    assert np.allclose(table["then"], [100 * np.exp(one.log_probability) for one in actual.removed], rtol=1e-2)
    (line,) = figure(app)["data"]
    assert np.allclose(_numbers(line["y"])[0], np.exp(actual.log_probability), rtol=1e-2)
    parts = component(app, "marks")
    assert "".join(part["text"] for part in parts["a"]) == PAIR["a"]
    words = [part for side in "ab" for part in parts[side] if "tip" in part]
    assert sum(part["shade"] == 1 for part in words) == len(actual.remaining)
    first = next(part for part in words if "number 1;" in part["tip"])
    assert first["shade"] == 0 and first["text"] == actual.removed[0].word.text


@pytest.mark.parametrize(
    "link", [{}, {"saliency.flips": "1", "saliency.tried": "5"}, {"saliency.of": "next", "saliency.flips": "5"}]
)
def test_words_are_changed_until_the_answer_is_another(open_app, bert, link):
    from bert_tf.explain import hotflip, mask_target, next_sentence_target

    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    target, follows = mask_target(bert, trace), trace.nsp.is_next > 0.5
    if "saliency.of" in link:
        target = next_sentence_target(bert, trace, follows)
        link = {**link, "saliency.follows": "IsNext" if follows else "NotNext"}
    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **{"saliency.method": "hotflip", **link}))
    actual = hotflip(bert, trace, target, int(link.get("saliency.flips", 3)), int(link.get("saliency.tried", 2)))
    assert actual.applied
    output = page_text(app).replace("\\", "")
    last = actual.applied[-1]
    if actual.flipped:
        assert f"the answer is **{last.answer.label}** ({percent(np.exp(last.answer_log_probability))})" in output
    assert f"falls from {percent(np.exp(actual.log_probability))} to {percent(np.exp(last.log_probability))}" in output
    for place, one in enumerate(actual.applied, 1):
        assert f"{place}. **{one.word.text}** → **{one.new}**: {signed(one.change, 3)} nats" in output
        assert f"then “{one.answer.label}” is the likeliest" in output
    # The last text, as it would be typed: bold what was changed, hidden what is hidden.
    wanted = f"{last.text_a} / {last.text_b}".replace(" the ", " [MASK] ", 1)
    lines = [line.strip().replace("**", "") for line in output.splitlines()]
    assert wanted in lines
    table = app.dataframe[0].value
    assert list(table["word"]) == [one.word.text for one in actual.tried]
    assert list(table["new"]) == [one.new for one in actual.tried]
    assert np.allclose(table["change"], [one.change for one in actual.tried], atol=1e-3)
    assert np.allclose(table["estimate"], [one.estimate for one in actual.tried], atol=1e-3)
    read, slope = figure(app)["data"]
    assert np.allclose(_numbers(read["x"]), [one.change for one in actual.tried[:15]], atol=1e-3)
    assert np.allclose(_numbers(slope["x"]), [one.estimate for one in actual.tried[:15]], atol=1e-3)
    words = [part for side in "ab" for part in component(app, "marks")[side] if "tip" in part]
    strongest = max(words, key=lambda part: part["shade"])
    assert strongest["shade"] == 1 and strongest["text"] == actual.tried[0].word.text
    assert f"{actual.tried[0].new} instead: {signed(actual.tried[0].change, 3)} nats" in strongest["tip"]
    assert sum("not tried" in part["tip"] for part in words) == len(words) - len({one.word for one in actual.tried}) - 1


def test_what_was_not_tried_is_not_called_harmless():
    from bert_tf.explain import HotFlip, Target
    from pages.explain.hotflip_view import _summary

    output = _summary(HotFlip(Target(3, 7, "good"), np.log(0.25), True, (), (), False, ()), {"most": 3})
    assert output.startswith("No word could be tried") and output.endswith("“good” has 25.0%.")


@pytest.mark.parametrize(
    "several, says",
    [
        (
            False,
            "“good” is not the likeliest answer here (25.0%), so there is nothing to change. Choose the likeliest.",
        ),
        (
            True,
            "“good” is at most as likely as not here (25.0%), so there is nothing to change. Choose a label above 50%.",
        ),
    ],
)
def test_an_answer_that_does_not_hold_is_told_by_its_kind(monkeypatch, several, says):
    from bert_tf.explain import HotFlip, Target
    from ui.widgets import targets

    page_text = []
    monkeypatch.setattr(targets.st, "info", lambda text, **_: page_text.append(text))
    actual = HotFlip(Target(None, 1, "good", True, is_multi_label=several), np.log(0.25), False, (), (), False, ())
    targets.note_not_likeliest(actual, "nothing to change")
    assert [text.replace("\\", "") for text in page_text] == [says]


def test_a_number_has_its_sign_with_a_true_minus_and_zero_has_a_plus():
    assert [signed(1.234), signed(-0.711), signed(-0.004), signed(-0.0004, 3)] == ["+1.23", "−0.71", "+0.00", "+0.000"]


@pytest.mark.parametrize("text, says", [(" Paris", "**Paris**"), ("a*b ", "**a\\*b**"), (" ", " ")])
def test_bold_words_have_no_space_beside_their_asterisks(text, says):
    from ui.widgets.formatting import bold

    assert bold(text) == says


def test_where_no_other_word_can_stand_that_is_said(open_app):
    link = {"saliency.method": "hotflip"}
    app = run_until_done(open_app(page="saliency", a="bunny", mask="a0", **link))
    assert "There is no word to change" in page_text(app) and not app.code
    app = run_until_done(open_app(page="saliency", a="The bunny ate a carrot today. " * 25, mask="a1", **link))
    assert "At most 128 tokens" in page_text(app) and not app.code
    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **{**link, "saliency.token": "good"}))
    assert "not the likeliest answer" in page_text(app) and not app.get("plotly_chart")


def test_what_was_worked_out_is_there_after_a_look_at_another_method(open_app):
    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **{"saliency.method": "input-reduction"}))
    long = app.session_state["_jobs"]["saliency input-reduction"]
    for method in ("occlusion", "input-reduction"):
        app.button_group(key="w_saliency_method").set_value(method)
        run_until_done(app.run())
    assert app.session_state["_jobs"]["saliency input-reduction"] is long and "stay" in page_text(app)


def test_what_was_patched_is_there_after_a_look_at_another_part(open_app):
    app = run_until_done(open_app(page="patching", **PAIR, mask="a3", **{"patching.a": "The bunny was the carrot."}))
    states = app.session_state["_jobs"]["patching state"]
    for part in ("attention", "state"):
        app.button_group(key="w_patching_part").set_value(part)
        run_until_done(app.run())
    assert states.status == "done" and app.session_state["_jobs"]["patching state"] is states


def test_an_answer_that_is_not_the_likeliest_is_not_reduced(open_app):
    link = {"saliency.method": "input-reduction", "saliency.token": "good"}
    app = run_until_done(open_app(page="saliency", **PAIR, mask="a3", **link))
    assert "not the likeliest answer" in page_text(app) and not app.get("plotly_chart")


@pytest.mark.parametrize(
    "texts", [{"a": "bunny", "mask": "a0"}, {"a": "bunny", "b": "carrot"}, {"a": "The bunny ate", "mask": "a0,a1,a2"}]
)
def test_where_no_word_can_be_tried_nothing_is_said_of_trying(open_app, texts):
    app = run_until_done(open_app(page="saliency", **texts, **{"saliency.method": "input-reduction"}))
    assert "There is no word to remove" in page_text(app) and "predicts something else. The answer" not in page_text(
        app
    )


def test_a_long_text_is_not_reduced(open_app):
    link = {"saliency.method": "input-reduction"}
    app = run_until_done(open_app(page="saliency", a="The bunny ate a carrot today. " * 12, mask="a1", **link))
    assert "At most 64 tokens" in page_text(app) and not app.code


def test_a_class_called_value_is_told_as_a_class():
    from bert_tf.explain.attribution.target import Target
    from ui.widgets import snippet_parts, targets

    a_class, a_value = (
        Target(None, 1, "value", is_class=True),
        Target(None, 0, "value", is_class=True, is_regression=True),
    )
    assert (targets.score_unit(a_class), targets.score_unit(a_value)) == ("nats", "of the value")
    assert (targets.score_text(a_class, np.log(0.25)), targets.score_text(a_value, 0.25)) == ("25.0%", "0.250")
    assert snippet_parts.target(a_class, None)[1] == "class_target(bert, trace, 'value')"
    assert snippet_parts.target(a_value, None)[1] == "class_target(bert, trace)"


# Patching


@pytest.mark.parametrize("part", ["state", "attention", "feed_forward"])
def test_the_patch_map_is_the_library_s(open_app, bert, part):
    from bert_tf.explain import mask_target, patch_blocks, patch_states

    other = "The bunny ate a carrot."
    app = run_until_done(open_app(page="patching", **PAIR, mask="a2", **{"patching.a": other, "patching.part": part}))
    clean, corrupted = (bert.trace(text, PAIR["b"], mask=("ate",)) for text in (PAIR["a"], other))
    asked = bert, clean, corrupted, mask_target(bert, clean)
    actual = patch_states(*asked) if part == "state" else patch_blocks(*asked, part)
    names = ["emb.", "1", "2", "3"] if part == "state" else ["1", "2", "3"]
    drawn = heat(app)
    assert drawn["x"] == names and app.segmented_control(key="w_patching_part").value == part
    shares = _numbers(drawn["z"]).reshape(clean.length, len(names))
    assert np.allclose(shares, np.clip(actual.recovered.T, -1, 1), atol=1e-3)


@pytest.mark.parametrize("place", ["", "0"])
def test_heads_are_put_over_as_by_the_library(open_app, bert, place):
    from bert_tf.explain import mask_target, patch_heads

    other = "The bunny ate a carrot."
    link = {"patching.a": other, "patching.part": "head", "patching.place": place}
    app = run_until_done(open_app(page="patching", **PAIR, mask="a2", **link))
    clean, corrupted = (bert.trace(text, PAIR["b"], mask=("ate",)) for text in (PAIR["a"], other))
    actual = patch_heads(bert, clean, corrupted, mask_target(bert, clean), 0 if place else None)
    drawn = heat(app)
    assert (drawn["x"], drawn["y"]) == (["1", "2", "3", "4"], ["1", "2", "3"])
    shares = _numbers(drawn["z"]).reshape(3, 4)
    assert np.allclose(shares, np.clip(actual.recovered, -1, 1), atol=1e-3) and np.ptp(shares) > 0.01
    where = "at “[CLS]” alone" if place else "at all tokens"
    assert f"what one attention head adds, {where}," in page_text(app).replace("\\", "")


def test_paths_are_the_library_s_and_a_press_leads_on(open_app, bert):
    from bert_tf.explain import Receiver, mask_target, patch_paths

    other = "The bunny ate a carrot."
    clean, corrupted = (bert.trace(text, PAIR["b"], mask=("ate",)) for text in (PAIR["a"], other))
    asked = bert, clean, corrupted, mask_target(bert, clean)
    app = run_until_done(open_app(page="patching", **PAIR, mask="a2", **{"patching.a": other, "patching.part": "path"}))

    def expect_rows(actual, rows):
        cells, shares = component(app, "cells"), actual.recovered[:rows]
        tips = [
            float(tip.split("brings back ")[1].rstrip("%").replace("−", "-"))
            for tip in cells["tips"]
            if "brings back" in tip
        ]
        assert tips == pytest.approx((100 * shares[actual.has_path[:rows]]).tolist(), abs=0.06)
        scaled = 0.5 + 0.5 * shares[0, :4] / np.abs(np.where(actual.has_path, actual.recovered, 0)[:, :4]).max()
        assert cells["shades"][:4] == pytest.approx(scaled.tolist(), abs=2e-3)
        assert len(cells["rows"]) == rows and cells["columns"][-1] == "FF"
        (embedded,) = re.findall(r"embeddings alone brings back (\S+)%", page_text(app))
        assert float(embedded.replace("−", "-")) == pytest.approx(100 * actual.share(actual.embeddings), abs=0.06)
        drawn = sorted(_numbers(figure(app)["data"][0]["x"]))
        wanted = sorted([actual.share(actual.embeddings), *actual.recovered[actual.has_path]], key=abs)[-15:]
        assert drawn == pytest.approx(sorted(wanted), abs=1e-4)
        return cells

    cells = expect_rows(patch_paths(*asked), 3)
    # The strongest is open; the values of a head lead on from there.
    app = run_until_done(
        open_app(
            page="patching",
            **PAIR,
            mask="a2",
            **{"patching.a": other, "patching.part": "path", "patching.sender": "3-2"},
        )
    )
    assert component(app, "cells")["picked"] == 2 * 5 + 1 and len(cells["tips"]) == 15
    app.button(key="w_patching_to_values").click().run()
    run_until_done(app)
    assert [param(app, f"patching.{name}") for name in ("into", "layer", "head")] == ["values", None, "2"]
    assert param(app, "patching.sender") is None
    expect_rows(patch_paths(*asked, Receiver("values", 2, 1)), 2)
    app.selectbox(key="w_patching_into").set_value("feed_forward").run()
    app.selectbox(key="w_patching_place").set_value(str(clean.masks[0])).run()
    run_until_done(app)
    cells = expect_rows(patch_paths(*asked, Receiver("feed_forward", 2), clean.masks[0]), 3)
    assert cells["tips"][-1].endswith("it does not come before") and cells["shades"][-1] is None


def test_only_the_embeddings_come_before_a_head_of_the_first_layer(open_app):
    link = {"patching.part": "path", "patching.into": "keys", "patching.layer": "1"}
    app = run_until_done(
        open_app(page="patching", **PAIR, mask="a2", **{"patching.a": "The bunny ate a carrot.", **link})
    )
    assert "Nothing but the embeddings comes before the keys of layer 1, head 1" in page_text(app)
    assert component(app, "cells") is None


def test_inputs_of_different_lengths_are_told_apart_with_the_words(open_app):
    app = run_until_done(
        open_app(page="patching", **PAIR, mask="a2", **{"patching.a": "The unbelievable bunny ate the carrot."})
    )
    output = page_text(app)
    assert "tokens above and" in output and "“unbelievable”" in output and not app.get("plotly_chart")


def test_the_same_text_is_not_compared_with_itself(open_app):
    app = run_until_done(open_app(page="patching", **PAIR, mask="a2", **{"patching.a": PAIR["a"]}))
    assert "still the same text" in page_text(app)


def test_patching_opens_with_a_contrast(open_app):
    app = run_until_done(open_app(page="patching", **PAIR, mask="a2"))
    other, words = app.text_area(key="w_patching_a").value.split(), PAIR["a"].split()
    assert len(other) == len(words) and sum(one != word for one, word in zip(other, words)) == 1
    assert app.text_area(key="w_patching_b").value == PAIR["b"]
    assert app.get("plotly_chart") and param(app, "patching.a") is None


def test_a_text_b_of_an_earlier_pair_keeps_no_contrast_away(open_app):
    app = run_until_done(open_app(page="patching", a=PAIR["a"], mask="a2", **{"patching.b": "An old text."}))
    assert "still the same text" not in page_text(app) and app.get("plotly_chart")


def test_no_contrast_is_computed_where_the_other_input_is_chosen(open_app, monkeypatch):
    exchanges = []
    monkeypatch.setattr(likely_words, "exchange", lambda *arguments: exchanges.append(arguments))
    link = {"patching.a": "The bunny ate a carrot."}
    app = run_until_done(open_app(page="patching", **PAIR, mask="a2", **link))
    assert app.get("plotly_chart") and not exchanges
    # What was chosen stays, also if it is emptied or the same as the text above.
    for text in ("", PAIR["a"]):
        app.text_area(key="w_patching_a").set_value(text).run()
        assert app.text_area(key="w_patching_a").value == param(app, "patching.a") == text
    assert not exchanges


def test_inputs_that_differ_where_nothing_is_seen_are_told(open_app):
    app = run_until_done(open_app(page="patching", **PAIR, mask="a2", **{"patching.a": "The bunny made the carrot."}))
    assert "differ in hidden words only" in page_text(app) and not app.get("plotly_chart")


def test_a_word_can_be_changed_by_choosing_another(open_app, bert):
    app = run_until_done(open_app(page="patching", **PAIR, mask="a2"))
    app.selectbox(key="w_patching_word").select_index(2).run()
    box = app.selectbox(key="w_patching_instead")
    assert box.options and all(len(bert.tokenizer.tokenize(word).tokens) == 1 for word in box.options)
    box.select_index(0).run()
    assert box.options[0] in run_until_done(app).text_area(key="w_patching_a").value
    assert app.get("plotly_chart")


def test_a_word_that_stands_twice_is_changed_where_it_was_chosen(open_app):
    app = run_until_done(open_app(page="patching", a="the cat saw the dog", mask="a2"))
    box = app.selectbox(key="w_patching_word")
    assert box.options == ["1: the", "2: cat", "3: the", "4: dog"]
    box.select("1: the").run()
    app.selectbox(key="w_patching_instead").select_index(0).run()
    changed = run_until_done(app).text_area(key="w_patching_a").value.split()
    assert changed[0] != "the" and changed[3] == "the"
    app = run_until_done(
        open_app(page="counterfactuals", a="the cat saw the dog", mask="a2", **{"counterfactuals.kind": "word"})
    )
    app.selectbox(key="w_counterfactuals_word").select("1: the").run()
    assert param(app, "counterfactuals.word") in (None, "a0")


def test_a_word_of_the_link_asks_for_no_suggestions(open_app, monkeypatch):
    from pages.explain import likely_words

    asked = []
    monkeypatch.setattr(likely_words, "suggestions", lambda *_: asked.append("suggestions") or ["dog"])
    link = {"counterfactuals.kind": "word", "counterfactuals.word": "a1"}
    app = run_until_done(open_app(page="counterfactuals", **PAIR, mask="a3", **link, **{"counterfactuals.with": "hen"}))
    assert component(app, "bars")["cards"] and not asked
    app = run_until_done(open_app(page="counterfactuals", **PAIR, mask="a3", **link))
    assert app.text_input(key="w_counterfactuals_with").value == "dog" and asked == ["suggestions"]


def test_what_is_typed_for_a_word_stays_with_it_when_the_masks_change(open_app):
    app = run_until_done(open_app(page="counterfactuals", **PAIR, mask="a3", **{"counterfactuals.kind": "word"}))
    offered = app.selectbox(key="w_counterfactuals_word").value
    assert param(app, "counterfactuals.word") is None
    app.text_input(key="w_counterfactuals_with").input("hen").run()
    assert param(app, "counterfactuals.with") == "hen" and param(app, "counterfactuals.word") == offered
    for mask in ("a4", "b1"):
        link = {key: param(app, key) for key in app.query_params}
        app = run_until_done(open_app(**link | {"mask": mask}))
        assert app.selectbox(key="w_counterfactuals_word").value == offered
        assert app.text_input(key="w_counterfactuals_with").value == "hen"


def test_changing_places_turns_the_two_inputs_round(open_app):
    app = run_until_done(
        open_app(page="patching", a="The bunny ate it.", mask="a2", **{"patching.a": "The bunny ate some."})
    )
    next(button for button in app.button if button.label == "Swap inputs").click().run()
    run_until_done(app)
    assert param(app, "a") == "The bunny ate some." and param(app, "patching.a") == "The bunny ate it."
    assert param(app, "mask") == "a2"


# Counterfactuals


def test_both_sides_stand_beside_the_library_s_halves(open_app, bert):
    from bert_tf.explain import left_context, predict_variants, right_context

    app = run_until_done(open_app(page="counterfactuals", **PAIR, mask="a3"))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    wanted = predict_variants(bert, trace, [cut(bert, trace, trace.masks[0]) for cut in (left_context, right_context)])
    cards = component(app, "bars")["cards"]
    assert [card["note"] for card in cards] == [
        "The full text",
        "Only the words before",
        "Only the words after",
    ]
    for card, outcome in zip(cards[1:], wanted):
        assert card["predictions"][0]["p"] == pytest.approx(outcome.masks[0].predictions[0].probability, abs=1e-6)


def test_every_word_is_left_out_once(open_app, bert):
    from bert_tf.explain import without_each_word

    app = run_until_done(open_app(page="counterfactuals", **PAIR, mask="a3", **{"counterfactuals.kind": "less"}))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    wanted = sorted((word.text, float(outcome.divergences[0])) for word, outcome in without_each_word(bert, trace))
    table = app.dataframe[0].value
    assert list(table["effect"]) == sorted(table["effect"], reverse=True) and len(table) == 9
    words, effects = zip(*sorted(zip(table["word"], table["effect"])))
    assert words == tuple(word for word, _ in wanted)
    assert np.allclose(effects, [effect for _, effect in wanted], atol=1e-5)


def test_another_word_and_a_swap_are_shown_before_and_after(open_app, bert):
    from bert_tf.explain import predict_variants, swapped, with_word

    link = {"counterfactuals.kind": "word", "counterfactuals.word": "a1", "counterfactuals.with": "dog"}
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=("the",))
    word = next(word for word in trace.words() if word.text == "bunny")
    for app, variant in (
        (open_app(page="counterfactuals", **PAIR, mask="a3", **link), with_word(bert, trace, word, "dog")),
        (open_app(page="counterfactuals", **PAIR, mask="a3", **{"counterfactuals.kind": "swap"}), swapped(bert, trace)),
    ):
        outcome = predict_variants(bert, trace, [variant])[0]
        on_page = component(run_until_done(app), "bars")["cards"][0]["predictions"][0]
        assert on_page["p"] == pytest.approx(outcome.masks[0].predictions[0].probability, abs=1e-6)
        assert component(app, "gauge")["is_next"] == pytest.approx(outcome.nsp.is_next, abs=1e-6)


def test_minimal_pairs_are_scored_as_by_the_library(open_app, bert):
    from bert_tf.explain import minimal_pairs
    from ui.samples.minimal_pairs import PAIRS

    app = run_until_done(
        open_app(page="counterfactuals", **{"counterfactuals.kind": "pairs", "counterfactuals.all": "1"})
    )
    actual = minimal_pairs(bert, [(pair.good, pair.bad) for pair in PAIRS])
    assert np.allclose(app.dataframe[0].value["margin"], [pair.margin for pair in actual], atol=1e-3)
    assert f"{abs(actual.pairs[0].margin):.2f} nats" in page_text(app)
    # The pair and the table of all each have files.
    assert [one.proto.label for one in app.get("download_button")] == [
        *("CSV", "JSON", "Arrays (NPZ)", "Tokens (HTML)"),
        *("CSV", "JSON", "Arrays (NPZ)", "Margins (HTML)"),
    ]
    app.text_input(key="w_counterfactuals_good").set_value("The dogs bark.").run()
    assert param(run_until_done(app), "counterfactuals.good") == "The dogs bark."


def test_sentences_that_the_model_cuts_get_no_verdict(open_app, tmp_path, monkeypatch):
    save_tiny(
        tmp_path,
        "tiny-short",
        "bert-base-cased-embedded",
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=16,
    )
    (tmp_path / "explorer.toml").write_text(LIMITS.replace("tiny-cased", "tiny-short"))
    use_models_in(tmp_path, monkeypatch)
    texts = {f"counterfactuals.{side}": "a " * 20 + side for side in ("good", "bad")}
    app = run_until_done(open_app(page="counterfactuals", **{"counterfactuals.kind": "pairs", **texts}))
    text = page_text(app)
    assert "The model reads 16 tokens at once, and a sentence is longer:" in text and "likely" not in text


# All of them


@pytest.fixture
def headless(explorer_home):
    """A model of the same home without any head."""
    from bert_tf.checkpoints import save
    from bert_tf.config import BertConfig
    from bert_tf.models import build_encoder
    from bert_tf.tokenizers import Tokenizer
    from tests.app.conftest import ROOT

    tokenizer = Tokenizer.from_folder(ROOT / "assets" / "models" / "bert-base-cased-embedded")
    config = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    save(explorer_home / "tiny-cased-headless", config, tokenizer, build_encoder(config))
    return "tiny-cased-headless"


@pytest.mark.parametrize("page", WHY)
def test_a_model_without_heads_is_answered_with_a_sentence(
    open_app, headless, explorer_home, tmp_path, monkeypatch, page
):
    from ui.session import model_store, state

    text = (explorer_home / "explorer.toml").read_text().replace('"tiny-uncased"', f'"{headless}"')
    (tmp_path / "headless.toml").write_text(text)
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "headless.toml"))
    state.limits.clear()
    model_store.catalogue.clear()
    app = run_until_done(open_app(page=page, **PAIR, mask="a1", model=headless))
    text = page_text(app)
    assert ("has no head for" in text or "no masked word" in text) and "choose a model that has one" in text


def test_parts_survive_their_link():
    from pages.explain import ablation_parts as parts

    places = frozenset({(0, 0), (0, 4), (2, 3), (1, 5)})
    assert parts.cells_from_text(parts.cells_as_text(places, 4), 3, 4) == places
    assert parts.cells_as_text(places, 4) == "1-1.f_2-x_3-4"
    every = frozenset(parts.all_cells(24, 16))
    assert (
        len(parts.cells_as_text(every, 16)) < 2000
        and parts.cells_from_text(parts.cells_as_text(every, 16), 24, 16) == every
    )


def test_a_fine_tuned_class_is_explained(open_app, monkeypatch):
    from bert_tf.explain import occlusion
    from bert_tf.explain.attribution.target import class_target
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type
    from bert_tf.inference.hooked_model import HookedModel
    from ui.session.model_store import shared_model

    bert = shared_model("tiny-cased").bert
    settings = TaskSettings("classify", ("bad", "good"), "mean")
    task = TaskModel(settings, network_over(bert.model, task_type("classify"), settings), bert.tokenizer, bert.runtime)
    monkeypatch.setattr(bert, "task", task)
    monkeypatch.setitem(vars(bert), "_hooked", HookedModel(bert))
    app = run_until_done(
        open_app(page="saliency", a="It was good.", **{"saliency.method": "occlusion", "saliency.label": "good"})
    )
    trace = bert.trace("It was good.")
    actual = occlusion(bert, trace, class_target(bert, trace, "good"), unit="word")
    assert "supports “good”" in page_text(app)
    assert np.allclose(app.dataframe[0].value["score"], [one.score for one in actual.words], rtol=1e-2, atol=1e-6)
