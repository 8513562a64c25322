"""Pages with the other family members: what a model declares is shown, what it has not is said, and nothing fails."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.analyses import analysis, check_model
from bert_tf.architectures import ARCHITECTURES
from bert_tf.config import BertConfig
from bert_tf.errors import MissingHead
from bert_tf.explain import agreement, compare, embedding_parts, nearest_contexts, read_rows, score_rows
from pages.learn.lessons import PARTS, part
from tests.app.family_models import GOLDEN_FOLDERS, MODERN_TEXT, TEXTS
from tests.app.page_reading import (
    column,
    component,
    near,
    page_text,
    run_until_done,
)
from tests.conftest import randomise
from ui.shell.limits import ROOT
from ui.widgets.formatting import signed


@pytest.fixture
def at(family_home, open_app):
    def open_model(model, **params):
        app = open_app(model=model, a=TEXTS[model], **params)
        assert not app.exception and not app.error, page_text(app)
        return app

    return open_model


@pytest.mark.parametrize("name", TEXTS)
def test_predict_shows_what_the_heads_give(at, name):
    app = at(name, b=TEXTS[name], mask="a1")
    masked, pair = name != "electra-discriminator", name == "albert"
    assert (component(app, "bars") is not None) == masked
    assert (component(app, "gauge") is not None) == pair
    assert (component(app, "marks") is not None) == (name == "electra-discriminator")
    if not masked:
        assert "no masked language model head" in page_text(app) and "python -m" not in page_text(app)
    elif not pair:
        assert "no next-sentence head" in page_text(app)


@pytest.mark.parametrize("name", TEXTS)
def test_attention_is_drawn(at, name):
    grid = component(at(name, page="all_heads", b=TEXTS[name]), "grid")
    assert grid["layers"] == (4 if name == "albert" else 2) and grid["heads"] == 4


@pytest.mark.parametrize("name", ["roberta", "albert"])
def test_attention_between_the_texts_has_the_tokens_of_both(at, name):
    app = at(name, page="all_heads", b="any work", show="ba", special="0")
    encoding = bert_tf.load(GOLDEN_FOLDERS / name).tokenizer.encode(TEXTS[name], "any work")
    own = {side: [token for token, source in zip(encoding.tokens, encoding.sources) if source == side] for side in "ab"}
    drawn = component(app, "lines")
    assert (drawn["left"], drawn["right"]) == (own["b"], own["a"])
    chips_of_page = component(app, "chips")["chips"]
    assert [chip["text"] for chip in chips_of_page if chip["side"] == "b"] == [*own["b"], encoding.tokens[-1]]


@pytest.mark.parametrize(
    "name, other", [("roberta", "albert"), ("electra-discriminator", "electra-generator"), ("distilbert", "roberta")]
)
def test_two_members_are_compared(at, name, other):
    app = at(name, page="side_by_side", b=TEXTS[name], with_model=other, mask="a1")
    assert "Predictions" in page_text(app)


def test_every_token_has_its_score(at):
    drawn = component(at("electra-discriminator"), "marks")
    words = [part for part in drawn["a"] if "tip" in part]
    assert [part["text"] for part in words] == ["w1", "w2", "w3", "w4"]
    assert all(0 <= part["shade"] <= 1 and "replaced" in part["tip"] for part in words)
    assert "".join(part["text"] for part in drawn["a"]) == TEXTS["electra-discriminator"]


def test_sentence_order_has_its_own_words(at):
    app = at("albert", b=TEXTS["albert"])
    assert component(app, "gauge")["order"] is True and "Sentence order" in page_text(app)


def test_what_a_verdict_on_two_texts_rests_on_is_told_of_each_head(at, own_family_home, open_app, tiny_folder):
    order = "swapped half of the time: their subject does not help"
    shutil.copytree(tiny_folder, own_family_home / "bert")
    assert order in page_text(at("albert", b=TEXTS["albert"]))
    app = open_app(model="bert", a="the cat sat", b="it ran")
    assert component(app, "gauge")["order"] is False and order not in page_text(app)
    assert "the subject alone often decides this" in page_text(app)


def test_why_two_texts_are_in_order(at):
    from bert_tf.explain import Ablation, ablate, occlusion, sentence_order_target

    bert = bert_tf.load(GOLDEN_FOLDERS / "albert")
    texts = TEXTS["albert"], "a work"
    trace = bert.trace(*texts)
    words = run_until_done(
        at("albert", page="saliency", b=texts[1], **{"saliency.method": "occlusion", "saliency.follows": "Swapped"})
    )
    actual = occlusion(bert, trace, sentence_order_target(bert, trace, False), unit="word")
    assert list(words.dataframe[0].value["score"]) == pytest.approx([one.score for one in actual.words], abs=1e-4)
    off = at("albert", page="ablation", b=texts[1], **{"ablation.off": "2-x"})
    gauge = component(off, "gauge")
    effect = ablate(bert, trace, Ablation(layers=(1,)))
    assert gauge["order"] and gauge["is_next"] == pytest.approx(effect.sop_after.in_order, abs=1e-5)
    swap = at("albert", page="counterfactuals", b=texts[1], **{"counterfactuals.kind": "swap"})
    typed = bert.trace(*texts[::-1])
    assert component(swap, "gauge")["is_next"] == pytest.approx(typed.sop.in_order, abs=1e-5)
    less = run_until_done(at("albert", page="counterfactuals", b=texts[1], **{"counterfactuals.kind": "less"}))
    assert "in_order" in less.dataframe[0].value and "is_next" not in less.dataframe[0].value


def test_why_a_token_looks_replaced(at, tmp_path):
    from bert_tf.explain import Ablation, ablate, every_head, occlusion, patch_states, replaced_target, sweep
    from tests.app.test_snippets import array

    name = "electra-discriminator"
    bert = bert_tf.load(GOLDEN_FOLDERS / name)
    trace = bert.trace(TEXTS[name])
    words = run_until_done(
        at(
            name,
            page="saliency",
            **{"saliency.method": "occlusion", "saliency.at": "2", "saliency.follows": "Original"},
        )
    )
    actual = occlusion(bert, trace, replaced_target(bert, trace, 2, False), unit="word")
    assert list(words.dataframe[0].value["score"]) == pytest.approx([one.score for one in actual.words], abs=1e-4)
    assert "supports “original”" in page_text(words)
    assert [part["text"] for part in component(words, "marks")["a"] if part.get("asked")] == ["w2"]
    # Without a word in the link it is the most suspected token.
    first = run_until_done(at(name, page="saliency", **{"saliency.method": "gradient"}))
    assert first.selectbox(key="w_saliency_at").value == replaced_target(bert, trace).position
    off = run_until_done(
        at(name, page="ablation", **{"ablation.off": "2-x", "ablation.colour": "effect", "ablation.at": "3"})
    )
    effect, swept = ablate(bert, trace, Ablation(layers=(1,))), sweep(bert, trace, every_head(bert.config))
    scores = off.dataframe[0].value
    assert list(scores["after"]) == pytest.approx(list(100 * effect.replaced_after), abs=1e-3)
    sign = -1 if trace.replaced[3] >= 0.5 else 1
    assert f"{signed(sign * swept.replaced_changes[0, 3], 3)} of probability" in component(off, "cells")["tips"][0]
    other = {"patching.a": "w1 w9 w3 w4", "patching.at": "1"}
    patched = run_until_done(at(name, page="patching", **other))
    actual = patch_states(bert, trace, bert.trace("w1 w9 w3 w4"), replaced_target(bert, trace, 1))
    drawn = json.loads(patched.get("plotly_chart")[0].proto.spec)["data"][0]["z"]
    assert np.allclose(array(drawn).T, actual.recovered, atol=1e-2)


@pytest.mark.parametrize(
    "name, more, other",
    [
        ("albert", {"b": "the work"}, "Swapped"),
        ("electra-discriminator", {"saliency.at": "2"}, "Original"),
    ],
)
def test_a_verdict_is_changed_by_other_words(at, name, more, other):
    from tests.app.test_snippets import of_job

    link = {"page": "saliency", "saliency.method": "hotflip", **more}
    app = run_until_done(at(name, **link))
    if "not the likeliest" in page_text(app):
        app = run_until_done(at(name, **link, **{"saliency.follows": other}))
    actual, bert = of_job(app, "saliency hotflip"), bert_tf.load(GOLDEN_FOLDERS / name)
    assert list(app.dataframe[0].value["new"]) == [one.new for one in actual.tried] != []
    for one in actual.tried:
        typed = bert.trace(one.text_a, one.text_b)
        share = typed.sop[actual.target.id] if name == "albert" else abs(typed.replaced[2] + actual.target.id - 1)
        assert one.log_probability == pytest.approx(np.log(share), abs=1e-4)


@pytest.mark.parametrize("name", ["roberta", "albert"])
@pytest.mark.parametrize("place", [2, 3])
def test_another_word_of_as_many_tokens_is_offered(at, name, place):
    app, words = at(name, page="patching", mask="a4"), TEXTS[name].split()
    app.selectbox(key="w_patching_word").select_index(place).run()
    offered = app.selectbox(key="w_patching_instead").options
    changed = [" ".join([*words[:place], one, *words[place + 1 :]]) for one in offered]
    assert changed and not any(one.split() == words for one in changed), offered
    tokenizer = bert_tf.load(GOLDEN_FOLDERS / name).tokenizer
    assert {tokenizer.encode(text).sources for text in changed} == {tokenizer.encode(TEXTS[name]).sources}
    app = run_until_done(app.selectbox(key="w_patching_instead").select_index(0).run())
    assert app.text_area(key="w_patching_a").value == changed[0] and "  " not in changed[0]
    assert not app.exception and not app.warning and app.get("plotly_chart"), page_text(app)


@pytest.mark.parametrize("page", ["contributions", "patching", "logit_lens"])
def test_a_byte_level_answer_is_bold_without_its_space(at, page):
    spelled = bert_tf.load(GOLDEN_FOLDERS / "roberta").tokenizer.vocab
    token = next(one for one in spelled if one.startswith(" ") and one.strip().isalpha())
    asked = {"logit_lens.follow": token} if page == "logit_lens" else {f"{page}.token": token}
    app = run_until_done(at("roberta", page=page, mask="a4", **asked, **{"patching.a": "the license of a work"}))
    output = page_text(app)
    assert f"**{token.strip()}** has" in output, output


@pytest.mark.parametrize("page", ["saliency", "ablation", "patching"])
def test_a_token_s_score_is_asked_in_the_lines_too(at, page):
    from bert_tf.explain.attribution.target import Target
    from tests.app.test_snippets import of_job, ran

    link = {"patching.a": "w1 w9 w3 w4", "ablation.colour": "effect", f"{page}.at": "2", f"{page}.follows": "Original"}
    app = run_until_done(at("electra-discriminator", page=page, **link))
    job = {"saliency": "saliency integrated-gradients", "patching": "patching state"}.get(page, page)
    actual, job_result = ran(app)["result"], of_job(app, job)
    if page == "ablation":
        heads = [place for place, one in enumerate(job_result.ablations) if one.heads]
        assert np.allclose(actual.replaced_changes, job_result.replaced_changes[heads], atol=1e-5)
    else:
        assert actual.target == job_result.target == Target(2, 0, "original", is_replaced_token=True)


def test_what_if_has_no_question_for_a_discriminator_and_says_so(at):
    output = page_text(at("electra-discriminator", page="counterfactuals", b="w5 w6"))
    assert (
        "scores every token as replaced or original" in output
        and "Saliency, Ablation, Contributions and Patching" in output
    )


def test_a_typed_mask_is_one_in_every_member(at, open_app):
    app = open_app(model="roberta", a="the [MASK] of work")
    assert not app.exception and component(app, "bars")["cards"][0]["title"] == "[MASK]"


@pytest.mark.parametrize("page", ["models", "input_embeddings", "nearest_words", "factors", "saliency", "architecture"])
@pytest.mark.parametrize("name", ["albert", "electra-discriminator"])
def test_other_pages_open(at, page, name):
    at(name, page=page, mask="a1")


def test_the_boxes_of_other_members_show_their_values(at):
    import bert_tf

    box = {"page": "architecture", "architecture.open": "sop"}
    assert "There is only one text" in page_text(at("albert", **box))
    app = at("albert", b="a work", **box)
    wanted = bert_tf.load(GOLDEN_FOLDERS / "albert").trace(TEXTS["albert"], "a work").sop.in_order
    assert component(app, "gauge") == {"is_next": pytest.approx(wanted, abs=1e-5), "order": True}
    app = at("electra-discriminator", page="architecture", **{"architecture.open": "replaced"})
    assert len([part for part in component(app, "marks")["a"] if "tip" in part]) == 4
    app = at("electra-discriminator", page="architecture", mask="a1")
    assert "has no head for masked words: the masks are left out" in page_text(app)


def test_a_head_that_brings_a_layer_says_what_it_reads(own_family_home, open_app, tmp_path):
    from tests.finetuning.test_round_trips_family import trained
    from ui.session import task_models

    trained("distilbert", "classify", tmp_path / "judge")
    task_models._settings.clear()
    app = open_app(model="judge", page="architecture", a="w1 w2", b="w3", **{"architecture.open": "task"})
    assert not app.exception and not app.error, page_text(app)
    assert "Input of the head: the first token's last hidden state, by a layer of its own." in page_text(app)
    task_models._settings.clear()


def test_shared_layers_are_told(at):
    app = at("albert", page="architecture")
    assert "All 4 layers share 2 sets of weights" in page_text(app) and "in each of 2 sets for 4 layers" in page_text(
        app
    )
    table = app.dataframe[1].value.set_index("Size")
    assert list(table.index) == ["base", "large", "xlarge", "xxlarge", "albert (loaded)"]
    assert table.loc["xxlarge", "L × H × A"] == "12 × 4,096 × 64" and table.loc["base", "E"] == 128
    assert "two rows of two tables" in page_text(
        at("distilbert", page="architecture", **{"architecture.open": "embeddings"})
    )


def test_the_boxes_of_a_pre_norm_model_say_what_it_does(modernbert_home, open_app):
    says = {
        "embeddings": "No row is added for its **position**; the heads turn their queries and keys by it instead",
        "attention": "all tokens in 2 of the 5 layers, and of those up to 4 places away in the others",
        "attention_norm": "the next block reads a copy of the sum, brought to one scale",
        "feed_forward_norm": "**24** parameters, which normalise the output of the last layer",
    }
    for box, words in says.items():
        app = open_app(page="architecture", model="modernbert", a=MODERN_TEXT, **{"architecture.open": box})
        assert not app.exception and words in page_text(app), page_text(app)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_text_of_every_box_follows_the_settings_of_the_model(name):
    architecture = ARCHITECTURES[name]
    for size in architecture.sizes:
        config = BertConfig.named(size, name)
        text = {box: part(box, config).text for box in PARTS}
        assert not any(brace in words for words in text.values() for brace in "{}")
        assert ("No row is added for its **position**" in text["embeddings"]) != architecture.has_position_table
        assert ("places away" in text["attention"]) == (config.local_attention is not None)
        assert ("the distances to them" in text["attention"]) == (architecture.score_terms > 1)
        assert ("reads a copy of the sum" in text["attention_norm"]) == architecture.norm_first
        assert ("only the last layer" in text["feed_forward_norm"]) == architecture.norm_first
        assert ("a third for gates" in text["feed_forward"]) == architecture.gated_units
        assert ("four times" in text["feed_forward"]) == (config.intermediate_size == 4 * config.hidden_size)


def test_the_feed_forward_block_is_as_wide_and_as_heavy_as_it_is_said_to_be():
    wide = {name: part("feed_forward", BertConfig.named("base", name)).text for name in ("bert", "modernbert")}
    assert "four times as wide" in wide["bert"] and "67% of the layers' weights" in wide["bert"]
    # ModernBERT base: 3 · 768 · 1,152 weights of 4 · 768² + 3 · 768 · 1,152.
    assert "1.5 times as wide" in wide["modernbert"] and "53% of the layers' weights" in wide["modernbert"]


def test_a_table_of_the_prediction_s_own_is_told_from_that_of_the_input():
    own, shared = (part("mlm", BertConfig(tie_word_embeddings=tied)).text for tied in (False, True))
    assert "a token table of the head's own" in own and "the same table" not in own and "the same table" in shared


LINES = "the license\tof the work\nthe work\tthe license of"


@pytest.fixture
def twins(own_family_home, tmp_path):
    """A second ALBERT and a second discriminator, of other weights; then a loader of any model by its name."""
    from ui.session import model_store

    for name in ("albert", "electra-discriminator"):
        bert = bert_tf.load(GOLDEN_FOLDERS / name)
        randomise(bert.model, 7)
        checkpoints.save(tmp_path / f"{name}-two", bert.config, bert.tokenizer, bert.model)
    model_store.catalogue.clear()
    return lambda name: bert_tf.load(tmp_path / name)


def typed(app, page, lines):
    app.text_area(key=f"w_{page}_lines").set_value(lines).run()
    return run_until_done(app)


def test_a_file_is_asked_for_the_order_and_for_replaced_tokens(at, twins):
    rows = read_rows((Path(__file__).parents[2] / "assets/samples/pairs.jsonl").read_bytes(), "jsonl").rows
    app = run_until_done(at("albert", page="dataset", **{"dataset.file": "pairs.jsonl", "dataset.ask": "order"}))
    wanted = [one.in_order for one in score_rows(twins("albert"), rows, ("order",), "given")]
    assert list(app.dataframe[0].value["order"]) == pytest.approx([100 * one for one in wanted], abs=1e-2)
    assert app.metric[0].label == "In order" and "hidden" not in app.dataframe[0].value
    app = run_until_done(at("electra-discriminator", page="dataset"))
    rows = read_rows((Path(__file__).parents[2] / "assets/samples/sentences.txt").read_bytes(), "text").rows
    actual = score_rows(twins("electra-discriminator"), rows, ("replaced",))
    table = app.dataframe[0].value
    assert list(table["suspected"]) == [one.suspected for one in actual]
    wanted = [100 * one.most_likely_replaced[1] for one in actual]
    assert list(table["replaced"]) == pytest.approx(wanted, abs=1e-2)
    assert "no head for hidden words, pseudo-perplexity and pairs of texts" in page_text(app)


def test_two_alberts_and_two_discriminators_agree_as_far_as_the_library_says(at, twins):
    cases = (("albert", LINES, "in_order_a"), ("electra-discriminator", "w1 w2\nw3 w4", "replaced_difference"))
    for name, lines, score in cases:
        app = at(name, page="agreement", **{"with": f"{name}-two", "agreement.file": "typed", "agreement.hide": "last"})
        table = typed(app, "agreement", lines).dataframe[0].value
        actual = agreement(twins(name), twins(f"{name}-two"), read_rows(lines).rows, "last")
        wanted = [getattr(one, score) for one in actual.rows]
        assert list(table[score]) == pytest.approx(wanted, abs=1e-4) and None not in wanted
    assert "Only scores of replaced tokens are compared" in page_text(app)


def test_the_time_lapse_follows_the_order_of_sentences(at, tmp_path, monkeypatch):
    from ui.session import runs

    folder = tmp_path / "runs" / "order"
    for step in (0, 10):
        shutil.copytree(GOLDEN_FOLDERS / "albert", folder / "snapshots" / f"step-{step}")
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 10, "loss": 1.0}))
    monkeypatch.setattr(runs, "SHIPPED", folder.parent)
    app = at("albert", page="time_lapse", b="of work", mask="a1", **{"time_lapse.run": "order"})
    share = bert_tf.load(GOLDEN_FOLDERS / "albert").trace(TEXTS["albert"], "of work", ["license"]).sop.in_order
    gauge = component(app, "gauge")
    assert gauge["order"] and gauge["is_next"] == pytest.approx(share, abs=1e-4)
    drawn = json.loads(app.get("plotly_chart")[0].proto.spec)["data"]
    assert drawn[-1]["name"] == "in order" and drawn[-1]["y"] == pytest.approx([share, share], abs=1e-4)


@pytest.mark.parametrize(
    "name, says",
    [
        ("albert", "P(in order) differs by {:.1f} percentage points."),
        ("electra-discriminator", "P(replaced) of a token differs by {:.1f} percentage points"),
    ],
)
def test_compare_subtracts_what_both_heads_say(at, twins, name, says):
    app = at(name, page="side_by_side", b="of work", **{"with": f"{name}-two"})
    pair = [twins(one) for one in (name, f"{name}-two")]
    traces = [bert.trace(TEXTS[name], "of work") for bert in pair]
    actual = compare(*traces, *(bert.tokenizer for bert in pair), *(len(trace.attentions) for trace in traces))
    apart = actual.in_order_difference if name == "albert" else actual.replaced_difference
    assert says.format(100 * abs(apart)) in page_text(app) and abs(apart) > 1e-3


def test_the_input_of_a_model_without_segments_is_a_sum_of_two(at, saved):
    app = at("distilbert", page="input_embeddings")
    assert "A sum of two vectors: token and position" in page_text(app)
    assert "segment" not in app.dataframe[0].value and "Segment" not in app.button_group(key="w_sum_of").options
    actual, bert = saved["input-sum"], bert_tf.load(GOLDEN_FOLDERS / "distilbert")
    parts = embedding_parts(bert, bert.trace(TEXTS["distilbert"]))
    header = [
        "position",
        "token",
        "token_norm",
        "position_norm",
        "total_norm",
        "token_share",
        "position_share",
        "cosine_token_position",
    ]
    assert list(actual["header"]) == header and actual["json"]["parts"] == ["token", "position"]
    near(actual["npz"]["vectors"], parts.vectors)
    near(column(actual, "position_share"), parts.shares[1])
    near(column(actual, "cosine_token_position"), parts.cosines[:, 0, 1])
    near(actual["npz"]["cosines"][:, 0, 1], parts.cosines[:, 0, 1])
    for name, count in (("distilbert", "two"), ("roberta", "three")):
        assert f"“emb.” the sum of the {count} parts" in page_text(at(name, page="nearest_words"))
    three = at("albert", page="input_embeddings")
    assert "A sum of three vectors: token, segment and position" in page_text(three)
    assert "Segment" in three.button_group(key="w_sum_of").options


def test_the_layers_are_read_by_a_head_of_any_member(at):
    assert "It is on top first after" in page_text(at("roberta", page="logit_lens", mask="a1"))


def test_a_discriminator_has_no_layers_to_read_words_from(at):
    bert = bert_tf.load(GOLDEN_FOLDERS / "electra-discriminator")
    with pytest.raises(MissingHead) as caught:
        check_model(analysis("logit-lens"), bert)
    (warning,) = at("electra-discriminator", page="logit_lens").warning
    assert warning.value.replace("\\", "") == str(caught.value)


def test_places_are_found_where_states_have_no_neighbours_in_the_vocabulary(at):
    app = run_until_done(at("albert", page="nearest_words", **{"nearest_words.among": "text", "nearest_words.at": "2"}))
    bert = bert_tf.load(GOLDEN_FOLDERS / "albert")
    layer, trace = bert.config.num_hidden_layers, bert.trace(TEXTS["albert"])
    rows = read_rows((ROOT / "assets" / "samples" / "sentences.txt").read_bytes()).rows
    (near,) = nearest_contexts(bert, trace.hidden_states[layer, [2]], layer, rows, 20, True).nearest
    assert list(app.dataframe[0].value["cosine"]) == pytest.approx([one.similarity for one in near], abs=1e-4)
    assert f"after layer {layer}" in page_text(app)
