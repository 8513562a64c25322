"""What every view saves: each menu offers all formats, and the files hold the library's numbers."""

import json

import numpy as np
import pytest

from tests.app.conftest import use_models_in
from tests.app.page_reading import (
    column,
    component,
    components,
    near,
    offered,
    param,
    run_until_done,
)
from tests.conftest import make_bert, randomise
from ui.widgets import export

PAIR = {"a": "The bunny ate the carrot.", "b": "It was good."}
ASKED = {**PAIR, "mask": "a3"}


@pytest.fixture(scope="module")
def bert(explorer_home):
    import bert_tf

    return bert_tf.load(explorer_home / "tiny-cased")


@pytest.fixture(scope="module")
def trace(bert):
    return bert.trace(PAIR["a"], PAIR["b"], mask=("the",), attentions=True, hidden_states=True)


@pytest.fixture(scope="module")
def plain(bert):
    return bert.trace(PAIR["a"], PAIR["b"], attentions=True)


def open_page_of(open_app, saved, names, **params):
    app = run_until_done(open_app(**params))
    offered(app, saved, names)
    return app


def test_words_asked_about_are_shown_saved_and_copied(open_app, saved, bert):
    words = {"predict.ask": "rabbit,  unbelievableness,"}
    for more in ({}, {"fill": "joint"}):
        saved.clear()
        app = open_app(page="predict", a="The dog ate the house.", mask="a1,a4", **words, **more)
        assert not app.exception and not app.error
        trace = bert.trace("The dog ate the house.", mask=["dog", "house"])
        output = "".join(one.value for one in app.markdown).replace("\\", "")
        assert "Pseudo-log-likelihood of words of several pieces" in output
        for score in bert.score_words(trace, ["unbelievableness"]):
            written = f"at token {score.positions[0]}: {score.pseudo_log_likelihood:.2f} nats".replace("-", "−")
            assert f"**unbelievableness** ({' '.join(score.pieces)}) {written}" in output
        predict_variants = (
            bert.fill_jointly(trace, targets=["rabbit"]).steps if more else bert.fill_mask(trace, targets=["rabbit"])
        )
        cards = component(app, "bars")["cards"]
        assert [(card["asked"][0]["text"], card["asked"][0]["rank"]) for card in cards] == [
            ("rabbit", f"{one.targets[0].rank:,}") for one in predict_variants
        ]
        near([card["asked"][0]["p"] for card in cards], [one.targets[0].probability for one in predict_variants])
        menu = saved["predictions"]
        asked = [row for row in menu["rows"] if row[-1] == "True"]
        assert [(int(row[0]), int(row[3]), row[4]) for row in asked] == [
            (one.position, one.targets[0].rank, "rabbit") for one in predict_variants
        ]
        assert len(menu["rows"]) == 2 * 5 + len(asked)
        assert [[one["rank"] for one in mask["targets"]] for mask in menu["json"]["masks"]] == [
            [one.targets[0].rank] for one in predict_variants
        ]
        drawn = [list(bars.y) for bars in menu["figures"]["Answer"].data]
        assert [list(names)[-1] for names in drawn] == [
            f"rabbit (rank {one.targets[0].rank:,})" for one in predict_variants
        ]
        code = app.code[-1].value
        assert "targets=['rabbit']" in code
    assert param(app, "predict.ask") == words["predict.ask"]
    app.text_input(key="w_predict_ask").set_value("").run()
    assert param(app, "predict.ask") is None and not component(app, "bars")["cards"][0]["asked"]


def test_predictions_and_the_pair(open_app, saved, bert, trace):
    from bert_tf.inference.predictions import fill_mask

    open_page_of(open_app, saved, ("predictions", "next-sentence"), page="predict", **ASKED)
    (answer,) = fill_mask(trace, bert.tokenizer, 5)
    near(column(saved["predictions"], "probability"), [one.probability for one in answer.predictions])
    near(saved["predictions"]["npz"]["probability"], [one.probability for one in answer.predictions])
    assert [row[4] for row in saved["predictions"]["rows"]] == [one.token for one in answer.predictions]
    assert saved["predictions"]["json"]["masks"][0]["predictions"][0]["token"] == answer.predictions[0].token
    assert saved["next-sentence"]["json"]["is_next"] == pytest.approx(trace.nsp.is_next, abs=1e-5)


def test_all_chosen_heads_are_saved_and_the_threshold_empties_the_figure(open_app, saved, plain):
    name = "layer-2-head-3-layer-1-head-1"
    open_page_of(
        open_app,
        saved,
        (name,),
        page="all_heads",
        layer="2",
        head="3",
        **PAIR,
        **{"all_heads.several": "1", "all_heads.more": "1.1", "all_heads.least": "20"},
    )
    maps = plain.attentions[[1, 0], [2, 0]]
    actual = saved[name]
    near(actual["npz"]["weights"], maps)
    near(actual["json"]["weights"], maps)
    near([row[4:] for row in actual["rows"]], maps.reshape(-1, plain.length), 1e-3)
    for file in ("npz", "json"):
        assert list(actual[file]["layers"]) == [1, 0] and list(actual[file]["heads"]) == [2, 0]
        for side in ("", "attended_"):
            assert list(actual[file][f"{side}tokens"]) == list(plain.tokens)
            assert list(actual[file][f"{side}positions"]) == list(range(plain.length))
    assert actual["json"]["model"] == plain.model
    assert [tuple(row[:4]) for row in actual["rows"]] == [
        (str(layer), str(head), str(position), token)
        for layer, head in ((1, 2), (0, 0))
        for position, token in enumerate(plain.tokens)
    ]
    assert actual["header"][4:] == [f"{position} {token}" for position, token in enumerate(plain.tokens)]
    for drawn, weights in zip(actual["figures"]["Heatmap"].data, maps, strict=True):
        near(np.nan_to_num(drawn.z), np.where(weights < 0.2, 0, weights))
        assert np.isnan(drawn.z).any()


def test_the_sheet_of_all_heads_is_saved(open_app, saved, plain):
    open_page_of(open_app, saved, ("all-heads",), page="model_view", **PAIR)
    near(saved["all-heads"]["npz"]["weights"], plain.attentions)
    near(saved["all-heads"]["json"]["weights"], plain.attentions)
    assert len(saved["all-heads"]["rows"]) == 3 * 4 * plain.length
    near([row[4:] for row in saved["all-heads"]["rows"]], plain.attentions.reshape(-1, plain.length), 1e-3)
    heads = [(str(layer), str(head)) for layer in range(3) for head in range(4) for _ in range(plain.length)]
    assert [tuple(row[:2]) for row in saved["all-heads"]["rows"]] == heads


def test_a_long_text_s_sheet_is_pooled_in_the_table_and_whole_in_the_arrays(open_app, saved, bert):
    text = "The bunny ate a carrot today . " * 20
    open_page_of(open_app, saved, ("all-heads",), page="model_view", a=text)
    actual = saved["all-heads"]
    length = bert.trace(text).length
    assert length > 64 and actual["npz"]["weights"].shape == (3, 4, length, length)
    assert np.shape(actual["json"]["weights"]) == (3, 4, 64, 64) and len(actual["header"]) == 4 + 64
    starts = [index * length // 64 for index in range(64)]
    assert actual["json"]["positions"] == starts == [int(row[2]) for row in actual["rows"][:64]]
    assert actual["json"]["weights"][1][2][5][6] == pytest.approx(
        actual["npz"]["weights"][1, 2, starts[5] : starts[6], starts[6] : starts[7]].max(), abs=1e-6
    )


def test_the_neuron_view(open_app, saved, bert, plain):
    from bert_tf.explain import head_vectors

    open_page_of(open_app, saved, ("layer-1-head-1-1",), page="neuron", **PAIR)
    actual, vectors = saved["layer-1-head-1-1"], head_vectors(bert, plain, 0, 0)
    near(actual["npz"]["queries"], vectors.queries)
    near(column(actual, "weight"), vectors.weights(1))


def test_methods(open_app, saved, bert, plain):
    from bert_tf.explain import token_attention

    open_page_of(
        open_app,
        saved,
        ("methods-layer-2-token-3",),
        page="attention_methods",
        layer="2",
        **PAIR,
        **{"attention_methods.token": "3"},
    )
    actual, wanted = saved["methods-layer-2-token-3"], token_attention(bert, plain, 1, 3)
    for name in ("raw", "norm_weighted", "rollout"):
        near(column(actual, name), getattr(wanted, name))
        near(actual["npz"][name], getattr(wanted, name))


def test_what_heads_do(open_app, saved, plain):
    from bert_tf.explain import summarise_heads

    open_page_of(open_app, saved, ("heads",), page="head_profiles", **PAIR)
    near(saved["heads"]["npz"]["entropy"], summarise_heads(plain).entropy)
    assert saved["heads"]["figures"].keys() == {"Measures", "Plane"}


def test_layer_by_layer(open_app, saved, bert, trace):
    from bert_tf.explain import logit_lens

    (position,) = trace.masks
    open_page_of(open_app, saved, ("logit-lens", f"token-{position}"), page="logit_lens", **ASKED)
    lens = logit_lens(bert, trace, (position,), 5)
    near(saved["logit-lens"]["npz"]["probabilities"], lens.probabilities)
    near(column(saved["logit-lens"], "probability"), lens.probabilities.ravel())
    near(saved[f"token-{position}"]["npz"]["answer_ranks"], lens.answer_ranks)
    near(column(saved[f"token-{position}"], "answer_probability"), np.repeat(lens.answer_probabilities[0], 5))


def test_switched_off(open_app, saved, bert, trace):
    from bert_tf.explain import Ablation, ablate, sweep

    open_page_of(
        open_app,
        saved,
        ("switched-off", "strongest-parts"),
        page="ablation",
        **ASKED,
        **{"ablation.colour": "effect", "ablation.off": "1-1"},
    )
    effect = ablate(bert, trace, Ablation(heads=((0, 0),)), 5, attention_shifts=True)
    near(saved["switched-off"]["npz"]["attention_shifts"], effect.attention_shifts)
    alone = sweep(bert, trace, [Ablation(heads=((layer, head),)) for layer in range(3) for head in range(4)])
    wanted = sorted(-alone.log_probability_changes.mean(axis=1), key=lambda one: -abs(one))
    menu = saved["strongest-parts"]
    drops = dict(zip((row[0] for row in menu["rows"]), column(menu, "score_drop")))
    heads = {name: drop for name, drop in drops.items() if "head" in name}
    assert sorted(heads) == sorted(one.name for one in alone.ablations)
    near(list(heads.values()), wanted, 1e-3)
    near(menu["figures"]["Map"].data[0].customdata[:, :4].ravel(), -alone.log_probability_changes.mean(axis=1), 1e-3)


def test_switched_off_saves_the_answers_and_the_grid_on_the_screen(open_app, saved, bert, trace):
    from bert_tf.explain import Ablation, ablate

    open_page_of(open_app, saved, ("switched-off",), page="ablation", **ASKED, **{"ablation.off": "1-1"})
    effect = ablate(bert, trace, Ablation(heads=((0, 0),)), 20, attention_shifts=True)
    menu = saved["switched-off"]
    near(menu["figures"]["Answers"].data[-1].z, effect.attention_shifts)
    rows = [dict(zip(menu["header"], row)) for row in menu["rows"]]
    before, after = (
        {one.token: one.probability for one in actual[0].predictions} for actual in (effect.before, effect.after)
    )
    by_answer = {row["answer"]: row for row in rows if row["measure"] == "mask"}
    assert set(by_answer) == {*before, *after}
    for token, row in by_answer.items():
        for name, shares in (("before", before), ("after", after)):
            assert row[name] == "" if token not in shares else float(row[name]) == pytest.approx(shares[token], 1e-3)
    (pair,) = (row for row in rows if row["measure"] == "is_next")
    near([float(pair[name]) for name in ("before", "after")], [effect.nsp_before.is_next, effect.nsp_after.is_next])
    shifts = [float(row["change"]) for row in rows if row["measure"] == "attention_shift"]
    near(shifts, effect.attention_shifts.ravel())


@pytest.mark.parametrize(
    "link",
    [
        {"counterfactuals.kind": "swap"},
        {"counterfactuals.kind": "word", "counterfactuals.word": "a1", "counterfactuals.with": "dog"},
    ],
)
def test_what_if_saves_the_verdict_where_nothing_is_hidden(open_app, saved, bert, plain, link):
    from bert_tf.explain import predict_variants, swapped, with_word

    open_page_of(open_app, saved, ("what-if",), page="counterfactuals", **PAIR, **link)
    bunny = next(word for word in plain.words() if word.text == "bunny")
    swap = link["counterfactuals.kind"] == "swap"
    (outcome,) = predict_variants(
        bert, plain, [swapped(bert, plain) if swap else with_word(bert, plain, bunny, "dog")], 5
    )
    menu = saved["what-if"]
    assert [row[0] for row in menu["rows"]] == [outcome.variant.label]
    near(column(menu, "is_next"), [outcome.nsp.is_next])
    near(column(menu, "is_next_change"), [outcome.nsp_change])
    assert menu["json"]["nsp_before"]["is_next"] == pytest.approx(plain.nsp.is_next, abs=1e-5)


def test_which_words(open_app, saved, bert, trace):
    from bert_tf.explain import gradient_x_input, mask_target

    open_page_of(
        open_app,
        saved,
        ("words-gradient-x-input",),
        page="saliency",
        **ASKED,
        **{"saliency.method": "gradient-x-input"},
    )
    actual = gradient_x_input(bert, trace, mask_target(bert, trace, trace.masks[0]))
    near(saved["words-gradient-x-input"]["npz"]["scores"], actual.scores)
    near(column(saved["words-gradient-x-input"], "score"), [one.score for one in actual.words])


def test_which_words_by_relevance(open_app, saved, bert, trace):
    from bert_tf.explain import layerwise_relevance, mask_target

    open_page_of(open_app, saved, ("words-lrp",), page="saliency", **ASKED, **{"saliency.method": "lrp"})
    actual, menu = layerwise_relevance(bert, trace, mask_target(bert, trace, trace.masks[0])), saved["words-lrp"]
    near(menu["npz"]["scores"], actual.scores, 1e-4)
    assert menu["json"]["rest"] == pytest.approx(actual.rest, abs=1e-3)
    assert menu["json"]["log_odds"] == pytest.approx(actual.log_odds, abs=1e-4)


def test_words_left(open_app, saved, bert, trace):
    from bert_tf.explain import mask_target, reduce_input

    open_page_of(open_app, saved, ("words-left",), page="saliency", **ASKED, **{"saliency.method": "input-reduction"})
    actual, menu = reduce_input(bert, trace, mask_target(bert, trace, trace.masks[0])), saved["words-left"]
    words = [one.word.text for one in actual.removed] + [one.text for one in actual.remaining]
    assert [row[menu["header"].index("word")] for row in menu["rows"]] == words
    scores = [one.log_probability for one in actual.removed]
    near([one["log_probability"] for one in menu["json"]["removed"]], scores, 1e-3)
    assert [one["text"] for one in menu["json"]["remaining"]] == [one.text for one in actual.remaining]
    assert menu["json"]["remaining_log_probability"] == pytest.approx(actual.remaining_log_probability, abs=1e-3)


def test_contributions(open_app, saved, bert, trace):
    from bert_tf.explain import contributions, mask_target

    open_page_of(open_app, saved, ("contributions",), page="contributions", **ASKED)
    actual, menu = contributions(bert, trace, mask_target(bert, trace, trace.masks[0])), saved["contributions"]
    near(menu["npz"]["heads"], actual.heads)
    names = "input", "biases", "total", "score"
    near([menu["json"][name] for name in names], [getattr(actual, name) for name in names])
    wanted = np.column_stack([actual.heads, actual.feed_forward]).ravel()
    near(sorted(column(menu, "contribution")), sorted([actual.input, *wanted, actual.biases]), 1e-4)
    parts = [tuple(row[:3]) for row in menu["rows"]]
    place = parts.index(("head", "2", "1"))
    assert column(menu, "contribution")[place] == pytest.approx(actual.heads[2, 1], rel=1e-3)
    near(menu["json"]["feed_forward"], actual.feed_forward)
    near(menu["figures"]["Map"].data[0].customdata.ravel(), wanted)
    near(menu["figures"]["Strongest"].data[0].x, column(menu, "contribution")[:15], 1e-4)


@pytest.mark.parametrize("place", ["", "5"])
def test_patched_heads(open_app, saved, bert, trace, place):
    from bert_tf.explain import mask_target, patch_heads

    other = "The bunny made the carrot."
    open_page_of(
        open_app,
        saved,
        ("patching",),
        page="patching",
        **ASKED,
        **{"patching.a": other, "patching.b": PAIR["b"], "patching.part": "head", "patching.place": place},
    )
    asked = bert, trace, bert.trace(other, PAIR["b"], mask=("the",)), mask_target(bert, trace, trace.masks[0])
    assert saved["patching"]["shown"] == f"tiny-cased · “{PAIR['a']}” · “{PAIR['b']}” · “{other}”"
    actual, menu = patch_heads(*asked, int(place) if place else None), saved["patching"]
    near(menu["npz"]["scores"], actual.scores, 1e-3)
    near(column(menu, "log_probability"), actual.scores.ravel(), 1e-3)
    near(column(menu, "recovered"), actual.recovered.ravel(), 1e-3)
    assert (menu["json"]["component"], menu["json"]["position"]) == ("head", int(place) if place else None)
    assert column(menu, "layer") == np.repeat([0, 1, 2], 4).tolist() and column(menu, "head") == [0, 1, 2, 3] * 3


@pytest.mark.parametrize("into, layer", [("answer", ""), ("feed_forward", "2"), ("keys", "1")])
def test_paths(open_app, saved, bert, trace, into, layer):
    from bert_tf.explain import Receiver, mask_target, patch_paths

    other = "The bunny made the carrot."
    open_page_of(
        open_app,
        saved,
        ("paths",),
        page="patching",
        **ASKED,
        **{
            "patching.a": other,
            "patching.b": PAIR["b"],
            "patching.part": "path",
            "patching.into": into,
            "patching.layer": layer,
        },
    )
    asked = bert, trace, bert.trace(other, PAIR["b"], mask=("the",)), mask_target(bert, trace, trace.masks[0])
    assert saved["paths"]["shown"] == f"tiny-cased · “{PAIR['a']}” · “{PAIR['b']}” · “{other}”"
    receiver = {"feed_forward": Receiver(into, 1), "keys": Receiver(into, 0, 0)}.get(into)
    actual, menu = patch_paths(*asked, receiver), saved["paths"]
    near(menu["npz"]["scores"], actual.scores, 1e-3)
    near(menu["npz"]["has_path"], actual.has_path)
    near(menu["npz"]["recovered"], actual.recovered, 1e-3)
    scores = [actual.embeddings, *actual.scores[actual.has_path], actual.whole]
    near(sorted(column(menu, "log_probability")), sorted(scores), 1e-3)
    senders = [row[0] for row in menu["rows"]]
    assert (senders[0], senders[-1]) == ("embeddings", "everything")
    wanted = None if receiver is None else {"part": into, "layer": int(layer) - 1, "head": receiver.head}
    assert menu["json"]["receiver"] == wanted
    assert menu["json"]["whole"] == pytest.approx(actual.whole, abs=1e-3)
    drawn = np.where(actual.has_path, actual.recovered, np.nan)
    np.testing.assert_allclose(menu["figures"]["Map"].data[0].customdata, drawn, atol=1e-3)


def test_words_of_a_linear_model(open_app, saved, bert, trace):
    from bert_tf.explain import lime, mask_target

    open_page_of(open_app, saved, ("words-lime",), page="saliency", **ASKED, **{"saliency.method": "lime"})
    actual, menu = lime(bert, trace, mask_target(bert, trace, trace.masks[0])), saved["words-lime"]
    near(column(menu, "score"), [one.score for one in actual.words], 1e-3)
    assert menu["json"]["weighted_r2"] == pytest.approx(actual.weighted_r2, abs=1e-3)
    assert menu["json"]["samples"] == 128 and menu["json"]["baseline"] == "[MASK]"


def test_words_flipped(open_app, saved, bert, trace):
    from bert_tf.explain import hotflip, mask_target

    open_page_of(open_app, saved, ("words-flipped",), page="saliency", **ASKED, **{"saliency.method": "hotflip"})
    actual, menu = hotflip(bert, trace, mask_target(bert, trace, trace.masks[0])), saved["words-flipped"]
    flips = [*actual.applied, *actual.tried]
    assert column(menu, "step") == [*range(1, len(actual.applied) + 1), *[0] * len(actual.tried)]
    assert [row[menu["header"].index("new")] for row in menu["rows"]] == [one.new for one in flips]
    for name in ("change", "estimate", "log_probability"):
        near(column(menu, name), [getattr(one, name) for one in flips], 1e-3)
        near([one[name] for one in menu["json"]["tried"]], [getattr(one, name) for one in actual.tried], 1e-3)
    assert [one["text_a"] for one in menu["json"]["applied"]] == [one.text_a for one in actual.applied]
    assert menu["json"]["flipped"] == actual.flipped and menu["json"]["most"] == 3
    near(menu["figures"]["Flips"].data[1].x, [one.estimate for one in actual.tried[:15]], 1e-3)


@pytest.mark.parametrize("part", ["state", "feed_forward"])
def test_patching(open_app, saved, bert, trace, part):
    from bert_tf.explain import mask_target, patch_blocks, patch_states

    other = "The bunny made the carrot."
    open_page_of(
        open_app,
        saved,
        ("patching",),
        page="patching",
        **ASKED,
        **{"patching.a": other, "patching.b": PAIR["b"], "patching.part": part},
    )
    asked = bert, trace, bert.trace(other, PAIR["b"], mask=("the",)), mask_target(bert, trace, trace.masks[0])
    actual, menu = patch_states(*asked) if part == "state" else patch_blocks(*asked, part), saved["patching"]
    near(menu["npz"]["scores"], actual.scores, 1e-3)
    near(column(menu, "log_probability"), actual.scores.ravel(), 1e-3)
    assert menu["json"]["component"] == actual.component
    name = "hidden_state" if part == "state" else "layer"
    assert column(menu, name) == np.repeat(np.arange(len(actual.scores)), trace.length).tolist()


@pytest.mark.parametrize(
    "kind, names",
    [
        ("sides", ("one-side",)),
        ("less", ("a-word-less",)),
        ("swap", ("what-if",)),
        ("pairs", ("minimal-pair",)),
    ],
)
def test_what_if(open_app, saved, bert, trace, kind, names):
    from bert_tf.explain import minimal_pairs, predict_variants, swapped, without_each_word
    from ui.samples.minimal_pairs import PAIRS

    open_page_of(open_app, saved, names, page="counterfactuals", **ASKED, **{"counterfactuals.kind": kind})
    (actual,) = saved.values()
    if kind == "less":
        wanted = [float(one.divergences.mean()) for _, one in without_each_word(bert, trace, 1)]
        near(column(actual, "divergence_bits"), wanted, 1e-3)
    elif kind == "swap":
        (outcome,) = predict_variants(bert, trace, [swapped(bert, trace)], 5)
        assert actual["json"]["variants"][0]["nsp"]["is_next"] == pytest.approx(outcome.nsp.is_next, abs=1e-5)
    elif kind == "pairs":
        (pair,) = minimal_pairs(bert, [(PAIRS[0].good, PAIRS[0].bad)])
        assert actual["json"]["margin"] == pytest.approx(float(pair.margin), abs=1e-3)
        scores = np.concatenate([side.log_probabilities for side in (pair.good, pair.bad)])
        near(column(actual, "log_probability"), scores[~np.isnan(scores)], 1e-3)
    else:
        assert {row[0] for row in actual["rows"]} == {"only what stands before", "only what stands after"}
        first = actual["json"]["variants"][0]["masks"][0]["predictions"]
        near(column(actual, "probability")[: len(first)], [one["probability"] for one in first])
        near([one["probability"] for one in actual["json"]["before"][0]["predictions"]][:1], [_first(bert, trace)])


def _first(bert, trace):
    return bert.fill_mask(trace, 1)[0].predictions[0].probability


def test_what_goes_in(open_app, saved, bert, plain):
    from bert_tf.explain import cosine_similarities, embedding_parts, embedding_table

    open_page_of(open_app, saved, ("input-sum", "similarity-sum", "positions"), page="input_embeddings", **PAIR)
    parts = embedding_parts(bert, plain)
    near(saved["input-sum"]["npz"]["vectors"], parts.vectors)
    near(saved["similarity-sum"]["npz"]["cosines"], cosine_similarities(parts.total))
    near(column(saved["similarity-sum"], "cosine"), cosine_similarities(parts.total).ravel())
    near(column(saved["input-sum"], "position_share"), parts.shares[2])
    near(saved["input-sum"]["json"]["cosines"], parts.cosines)
    positions = cosine_similarities(embedding_table(bert, "position"))
    near(saved["positions"]["npz"]["cosines"], positions)
    near(column(saved["positions"], "cosine"), positions.ravel())


def test_nearest_words(open_app, saved, bert, plain):
    from bert_tf.explain import embedding_table, nearest_tokens
    from bert_tf.explain.representations.vectors import word_ids

    open_page_of(open_app, saved, ("nearest-words",), page="nearest_words", **PAIR)
    static = embedding_table(bert, "token")[plain.token_ids]
    wanted = nearest_tokens(bert, static, 10, True, word_ids(bert.tokenizer))
    cosines = [[one.similarity for one in near] for near in wanted]
    actual = saved["nearest-words"]
    near(actual["npz"]["similarities"][:, 0], cosines)
    assert actual["npz"]["ids"].shape == (plain.length, 5, 10) and actual["json"]["tokens"] == list(plain.tokens)
    near([[one["similarity"] for one in vectors[0]] for vectors in actual["json"]["nearest"]], cosines)
    near(np.reshape(column(actual, "similarity"), (plain.length, 5, 10))[:, 0], cosines)


def test_factors(open_app, saved, bert, plain):
    from bert_tf.explain import factorise, feed_forward_activations

    names = ("factors", "factor-2-units")
    link = {"factors.count": "3", "factors.at": "2", "factors.layers": "2"}
    open_page_of(open_app, saved, names, page="factors", **PAIR, **link)
    actual = factorise(feed_forward_activations(bert, plain, 1, 1), 3)
    menu, units = saved["factors"], actual.named(plain.tokens, range(plain.length), 1).units[1]
    near(menu["npz"]["weights"], actual.weights, 1e-3)
    near(menu["npz"]["unit_weights"], actual.unit_weights, 1e-3)
    near(column(menu, "weight"), -np.sort(-actual.weights, axis=1).ravel(), 1e-3)
    near(menu["json"]["weights"], actual.weights, 1e-3)
    assert menu["json"]["first_layer"] == 1 and menu["json"]["explained"] == pytest.approx(actual.explained, abs=1e-4)
    near(saved["factor-2-units"]["npz"]["weight"], [one.weight for one in units], 1e-3)
    assert column(saved["factor-2-units"], "unit") == [one.unit for one in units]
    assert [one["layer"] for one in menu["json"]["units"][1]] == [1] * len(units)
    assert menu["figures"]["Map"].data[0].z.shape == (3, plain.length)


def test_meaning(open_app, saved, bert):
    from bert_tf.explain import cosine_similarities, occurrences, principal_components, sense_separation
    from ui.samples import word_senses

    names = ("word-senses-3", "word-senses-similarity-3", "senses-by-layer")
    open_page_of(open_app, saved, names, page="word_senses")
    read = word_senses.read(word_senses.example("bank"), 100, 2000)
    actual = occurrences(bert, read.texts, "bank")
    near(saved["word-senses-3"]["npz"]["vectors"], actual.vectors)
    near(saved["word-senses-3"]["json"]["cosines"], cosine_similarities(actual.vectors[3]))
    coordinates, ratios = principal_components(actual.vectors[3])
    near(column(saved["word-senses-3"], "x"), coordinates[:, 0], 1e-3)
    near(saved["word-senses-3"]["json"]["explained_variance_ratio"], ratios, 1e-3)
    order = [read.texts.index(text) for text in saved["word-senses-similarity-3"]["json"]["texts"]]
    near(saved["word-senses-similarity-3"]["npz"]["cosines"], cosine_similarities(actual.vectors[3][order]))
    apart = sense_separation(actual.vectors, [read.senses[text] for text in actual.texts])
    near(column(saved["senses-by-layer"], "nearest"), apart.nearest)


def test_two_models(open_app, saved, bert, trace, explorer_home):
    import bert_tf
    from bert_tf.explain import compare

    open_page_of(
        open_app,
        saved,
        ("comparison", "facts", "attention-compared"),
        page="side_by_side",
        depth="100",
        **ASKED,
        **{"with": "tiny-uncased"},
    )
    other = bert_tf.load(explorer_home / "tiny-uncased")
    two = other.trace(PAIR["a"], PAIR["b"], mask=(trace.words()[3].text,))
    (mask,) = compare(trace, two, bert.tokenizer, other.tokenizer, 3, 2, top_k=5, across=True).masks
    near(saved["comparison"]["npz"]["divergence_bits"][0], mask.divergence)
    near(saved["attention-compared"]["npz"]["weights_b"], two.attentions[-1].mean(axis=0))
    near(column(saved["attention-compared"], "weight")[: trace.length], trace.attentions[-1].mean(axis=0)[0])
    assert (
        saved["attention-compared"]["json"]["layers"] == [2, 1] and saved["attention-compared"]["json"]["head"] is None
    )
    assert column(saved["facts"], "parameters") == [one.model.count_params() for one in (bert, other)]
    for name in ("comparison", "attention-compared"):
        assert saved[name]["shown"].startswith("tiny-cased and tiny-uncased") and PAIR["b"] in saved[name]["shown"]


def test_figures_name_the_texts_of_both_sides(open_app, saved):
    link = {"side_by_side.what": "texts", "side_by_side.a": "Another text."}
    assert not open_app(page="side_by_side", a="The bunny sat.", **link).exception
    assert "“The bunny sat.” · “Another text.”" in saved["attention-compared"]["shown"]


@pytest.mark.parametrize(
    "models, look, name",
    [
        (("classes", "classes"), "attention", "classes-compared"),
        (("score", "score"), "attention", "answers-compared"),
        (("tags", "words"), "attention", "marks-compared"),
        (("classes", "classes"), "layers", "classes-by-layer-compared"),
        (("score", "score"), "layers", "scores-by-layer-compared"),
    ],
)
def test_figures_of_two_tasks_name_the_models_and_the_texts_of_both_sides(
    with_tasks, open_app, saved, models, look, name
):
    # Labels of different texts are not compared.
    texts = ["the cat sat", "the cat sat" if name == "marks-compared" else "a dog ran"]
    link = {"side_by_side.what": "both", "side_by_side.a": texts[1], "side_by_side.look": look}
    one, other = models
    app = run_until_done(open_app(page="side_by_side", model=one, a=texts[0], b="it ran", **{"with": other, **link}))
    assert not app.exception and not app.error
    wanted = [" and ".join(dict.fromkeys(models)), *(f"“{text}”" for text in dict.fromkeys(texts))]
    assert saved[name]["shown"] == " · ".join(wanted)


@pytest.mark.parametrize("head, title", [("2", "layer 3, head 2"), ("0", "layer 3, mean of its heads")])
def test_the_attention_maps_of_both_sides_name_their_side_layer_and_head(open_app, saved, head, title):
    link = {"depth": "100", "side_by_side.what": "texts", "side_by_side.a": "The bunny ran.", "side_by_side.head": head}
    app = open_app(page="side_by_side", a="The bunny sat.", **{"side_by_side.drawn": "lines", **link})
    assert not app.exception
    drawn = saved["attention-compared"]["figures"]
    titles = [f"Text 1, {title}", f"Text 2, {title}", f"Text 1, {title}, minus Text 2, {title}"]
    assert [drawn[name].layout.title.text for name in ("A", "B", "Difference")] == titles
    assert [one["caption"] for one in components(app, "lines")] == [
        f"tiny-cased · {title} · “{text}”" for text in ("The bunny sat.", "The bunny ran.")
    ]


def test_figures_of_minimal_pairs_name_their_sentences(open_app, saved):
    app = open_app(page="counterfactuals", **PAIR, **{"counterfactuals.kind": "pairs"})
    assert not app.exception
    shown = saved["minimal-pair"]["shown"]
    assert shown.count("“") == 2 and PAIR["a"] not in shown


def test_two_models_layer_by_layer(open_app, saved, bert, trace):
    from bert_tf.explain import logit_lens

    open_page_of(
        open_app,
        saved,
        ("comparison", "facts", "layers-compared"),
        page="side_by_side",
        **ASKED,
        **{"with": "tiny-uncased", "side_by_side.look": "layers"},
    )
    lens = logit_lens(bert, trace, trace.masks, 1)
    rows = saved["layers-compared"]["npz"]
    near(rows["probability_a"], lens.probabilities[0, rows["hidden_state_a"].astype(int), 0])


def test_two_models_on_a_pair_without_a_mask(open_app, saved, plain):
    names = ("comparison", "facts", "attention-compared")
    open_page_of(open_app, saved, names, page="side_by_side", **PAIR, **{"with": "tiny-uncased"})
    near(column(saved["comparison"], "probability_a"), [plain.nsp.is_next])


def test_layers_of_two_models(open_app, saved, bert, explorer_home):
    import bert_tf
    from bert_tf.explain import layer_similarity

    open_page_of(
        open_app,
        saved,
        ("layer-similarity",),
        page="layer_similarity",
        **PAIR,
        **{"with": "tiny-uncased", "layer_similarity.source": "view"},
    )
    other = bert_tf.load(explorer_home / "tiny-uncased")
    wanted = layer_similarity([bert.trace(PAIR["a"], PAIR["b"])], [other.trace(PAIR["a"], PAIR["b"])])
    near(saved["layer-similarity"]["npz"]["similarity"], wanted, 1e-3)
    near(column(saved["layer-similarity"], "cka"), wanted.ravel(), 1e-3)


@pytest.mark.parametrize("measure", ["svcca", "pwcca"])
def test_layers_of_two_models_by_canonical_correlations(open_app, saved, bert, explorer_home, measure):
    import bert_tf
    from bert_tf.explain import layer_similarity
    from bert_tf.explain.representations.layer_similarity import chance_similarity
    from tests.app.page_reading import page_text

    app = open_page_of(
        open_app,
        saved,
        ("layer-similarity",),
        page="layer_similarity",
        **PAIR,
        **{"with": "tiny-uncased", "layer_similarity.source": "view", "layer_similarity.measure": measure},
    )
    other = bert_tf.load(explorer_home / "tiny-uncased")
    traces = [[one.trace(PAIR["a"], PAIR["b"])] for one in (bert, other)]
    wanted, actual = layer_similarity(*traces, measure=measure), saved["layer-similarity"]
    near(actual["npz"]["similarity"], wanted, 1e-3)
    near(actual["json"]["similarity"], wanted, 1e-3)
    near(actual["figures"]["Map"].data[0].z, wanted, 1e-3)
    assert actual["json"]["chance_similarity"] == pytest.approx(chance_similarity(*traces, measure), abs=1e-3)
    output = f"last layer shuffled it is {chance_similarity(*traces, measure):.2f} here"
    assert f"{measure.upper()} of every layer" in page_text(app) and output in page_text(app)
    app.button_group(key="w_layer_similarity_measure").set_value("cka").run()
    assert param(run_until_done(app), "layer_similarity.measure") is None and "Linear CKA of every layer" in page_text(
        app
    )


def test_a_whole_file_and_two_models_on_it(open_app, saved):
    lines = "The bunny [MASK] the carrot.\nIt was [MASK]."
    open_page_of(
        open_app, saved, ("agreement",), page="agreement", **{"with": "tiny-uncased", "agreement.lines": lines}
    )
    actual = saved["agreement"]
    near(column(actual, "divergence_bits"), actual["npz"]["divergence_bits"])
    near(actual["figures"]["Rows"].data[0].x, actual["npz"]["divergence_bits"])


def test_columns_of_a_table_become_arrays():
    actual = export.columns(("n", "x", "word"), [(1, 0.5, "a"), (2, "", None)])
    assert actual["n"].tolist() == [1, 2] and actual["word"].tolist() == ["a", ""]
    np.testing.assert_array_equal(actual["x"], [0.5, np.nan])


def test_a_number_that_is_none_is_null_in_the_record():
    assert json.loads(export.record_json({"x": np.array([1.0, np.nan])})) == {"x": [1.0, None]}


def test_a_picture_is_made_when_its_button_is_pressed(open_app):
    from ui.elements.components import _PICTURES

    app = run_until_done(open_app(page="all_heads", **PAIR))
    first, _, *drawings = components(app, "picture")
    assert [one["name"] for one in drawings] == ["all-heads", "layer-1-head-1"]
    assert first["title"] == "Heatmap" and "figure" not in first and _PICTURES == ("svg", "png")
    app.session_state["_c_save_layer-1-head-1-heatmap_asked"] = {"format": "svg", "library": True}
    app.run()
    drawn = components(app, "picture")[0]
    assert drawn["format"] == "svg" and json.loads(drawn["figure"])["data"][0]["type"] == "heatmap"
    assert "Plotly" in drawn["library"]
    app.run()
    assert "figure" not in components(app, "picture")[0]


@pytest.mark.parametrize(
    "box, menu",
    [
        ("attention", "values"),
        ("feed_forward_norm", "values"),
        ("mlm", "predictions"),
        ("nsp", "next-sentence"),
    ],
)
def test_the_boxes_of_the_architecture(open_app, saved, bert, trace, box, menu):
    from bert_tf.explain.models.architecture import layer_activations, parts

    open_page_of(
        open_app,
        saved,
        ("boxes", "box-sizes", "sizes", menu),
        page="architecture",
        **ASKED,
        **{"architecture.open": box},
    )
    boxes = parts(bert.model, trace.length, 1)
    assert saved["boxes"]["npz"]["parameters"].tolist() == [part.parameters for part in boxes]
    assert column(saved["boxes"], "flops") == [part.flops for part in boxes]
    (own,) = (part for part in boxes if part.name == box)
    loaded = saved["box-sizes"]["json"]["sizes"][-1]
    assert (loaded["parameters"], loaded["flops"]) == (own.parameters, own.flops)
    near(column(saved["box-sizes"], "flops_share")[-1], own.flops / sum(part.flops for part in boxes))
    assert list(saved["box-sizes"]["figures"]["Parameters"].data[0].x) == column(saved["box-sizes"], "parameters")
    if menu == "values":
        values = layer_activations(bert, trace, 0)[box]
        near(saved["values"]["npz"]["values"], values)
        near([row[2:] for row in saved["values"]["rows"]], values)
        assert (saved["values"]["json"]["name"], saved["values"]["json"]["layer"]) == (box, 0)
    elif menu == "next-sentence":
        near(column(saved[menu], "probability")[0], trace.nsp.is_next)
    assert saved["sizes"]["npz"]["parameters"][-1] == sum(part.parameters for part in boxes)
    assert saved["sizes"]["json"]["sizes"][-1]["config"]["hidden_size"] == bert.config.hidden_size


def test_a_layer_s_mean_attention_in_the_architecture(open_app, saved, trace):
    link = {"architecture.open": "attention", "architecture.values": "attentions", "architecture.layer": "2"}
    open_page_of(
        open_app, saved, ("boxes", "box-sizes", "sizes", "mean-attention"), page="architecture", **ASKED, **link
    )
    near(saved["mean-attention"]["npz"]["values"], trace.attentions[1])
    assert saved["mean-attention"]["json"]["layer"] == 1
    by_head = np.reshape(
        [[float(cell) for cell in row[3:]] for row in saved["mean-attention"]["rows"]], (-1, *2 * [trace.length])
    )
    near(by_head, trace.attentions[1])
    near(saved["mean-attention"]["figures"]["Values"].data[0].z, trace.attentions[1].mean(axis=0), 1e-3)


def test_the_family(open_app, saved):
    from bert_tf.explain.models.architecture_table import architecture_rows

    open_page_of(open_app, saved, ("architectures",), page="architectures")
    assert saved["architectures"]["npz"]["parameters"].tolist() == [
        row.parameters["total"] for row in architecture_rows()
    ]


def test_a_saved_figure_says_its_model_layer_head_and_text(open_app, monkeypatch):
    from ui.elements import components as elements

    figures = {}
    monkeypatch.setattr(elements, "picture", lambda key, title, name, figure: figures.update({name: figure}))
    text = 'The bunny <b>ate</b> the "carrot".'
    app = open_app(page="all_heads", model="tiny-cased", a=text, b="It was hungry.", layer="2", head="3")
    output = f"tiny-cased · layer 2, head 3 · “{text}” · “It was hungry.”"
    assert components(app, "lines")[0]["caption"] == output
    assert components(app, "grid")[0]["caption"] == output.replace(" · layer 2, head 3", "")
    assert figures
    # Plotly decodes few named entities, and "&quot;" is none of them.
    escaped = output.replace("<", "&lt;").replace(">", "&gt;")
    for name, figure in figures.items():
        title = figure().layout.title.text.replace("<br>", " ")
        assert name.startswith("layer-2-head-3") and title == escaped
    figures.clear()
    run_until_done(open_app(page="saliency", model="tiny-uncased", a="the cat sat", mask="a1"))
    assert figures and all("tiny-uncased · “the cat sat”" in figure().layout.title.text for figure in figures.values())


@pytest.fixture(scope="module")
def single_text_home(tmp_path_factory):
    """A models folder with a classifier of single texts that has no head for pairs: it leaves out text B."""
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type

    home, bert = tmp_path_factory.mktemp("single"), make_bert(with_heads=("pooler",))
    settings = TaskSettings("classify", labels=("bad", "good"))
    network = network_over(bert.model, task_type(settings.task), settings)
    randomise(network, 1)
    save_task(home / "single-texts", bert.config, bert.tokenizer, network, settings)
    (home / "explorer.toml").write_text('[models]\ndefault = "single-texts"\nwarm = false\n')
    return home


@pytest.mark.parametrize("page", ["task_predictions", "all_heads", "saliency", "head_profiles", "logit_lens"])
def test_a_saved_figure_names_no_text_that_the_model_leaves_out(single_text_home, monkeypatch, open_app, saved, page):
    use_models_in(single_text_home, monkeypatch)
    app = run_until_done(open_app(page=page, a="the cat sat", b="it ran", mask=""))
    assert not app.exception and not app.error
    drawings = components(app, "lines") + components(app, "grid")
    shown = [menu["shown"] for menu in saved.values()] + [one["caption"] for one in drawings]
    assert shown and all("“the cat sat”" in one and "it ran" not in one for one in shown)


def test_a_saved_score_has_no_text_that_the_model_leaves_out(with_tasks, open_app, saved):
    run_until_done(open_app(page="task_predictions", model="score", a="the cat sat", b="it ran"))
    assert (saved["score"]["json"]["text_a"], saved["score"]["json"]["text_b"]) == ("the cat sat", "")


@pytest.mark.parametrize("model, name", [("pairs", "classes"), ("answers", "answers"), ("endings", "endings")])
def test_a_saved_figure_names_both_texts_of_a_task(with_tasks, open_app, saved, model, name):
    run_until_done(open_app(page="task_predictions", model=model, a="the cat sat", b="it ran\non a mat"))
    assert "“the cat sat” · “it ran on a mat”" in saved[name]["shown"]


def test_the_menus_are_filled_when_they_are_opened(open_app):
    app = run_until_done(open_app(menus=False, page="logit_lens", **PAIR))
    assert not app.get("download_button") and not app.code
    app.session_state["w_save_menu"] = True
    assert run_until_done(app.run()).get("download_button") and not app.code
    app.session_state["w_code_menu"] = True
    assert "bert_tf.load" in run_until_done(app.run()).code[-1].value
