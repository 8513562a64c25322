"""What can be read out of the other family members: by the heads they declare, and in their own tokens."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import MissingHead
from bert_tf.errors import InputError, MaskPositionError, NothingToPredict
from bert_tf.explain import (
    Ablation,
    ablate,
    agreement,
    compare,
    embedding_parts,
    every_layer,
    factorise,
    feed_forward_activations,
    fine_tuning_divergence,
    gradient_x_input,
    hotflip,
    integrated_gradients,
    lime,
    mask_target,
    occlusion,
    patch_states,
    predict_variants,
    reduce_input,
    replace_and_detect,
    replaced_target,
    score_rows,
    sentence_order_target,
    summarise_heads,
    summarise_rows,
    swapped,
    sweep,
)
from bert_tf.explain.attention.value_attention import output_kernels
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.explain.interventions.replaced_token_detection import replaced_scores
from bert_tf.inference.bert import Bert
from bert_tf.inference.text_filling import fill_text
from tests.conftest import randomise

GOLDEN_FOLDERS = Path(__file__).parents[1] / "golden" / "family"
NAMES = ("roberta", "distilbert", "albert", "electra-discriminator", "electra-generator")


@pytest.fixture(scope="module")
def berts():
    return {name: bert_tf.load(GOLDEN_FOLDERS / name) for name in NAMES}


@pytest.fixture(params=NAMES)
def bert(request, berts):
    return berts[request.param]


def text_for(bert):
    return "w1 w2 w3 w4 w5" if "w1" in bert.tokenizer else "the license of the work"


def test_activations_of_every_member_s_blocks_have_factors(bert):
    trace = bert.trace(text_for(bert), hidden_states=True)
    actual = factorise(feed_forward_activations(bert, trace), 3)
    assert actual.unit_weights.shape[1:] == (bert.config.num_hidden_layers, bert.config.intermediate_size)
    assert actual.weights.shape == (3, trace.length) and 0 < actual.explained <= 1


def test_a_trace_has_what_the_heads_give(bert):
    trace = bert.trace(text_for(bert), text_for(bert), mask=[2] if "mlm" in bert.heads else ())
    assert (trace.logits is not None) == ("mlm" in bert.heads)
    assert (trace.sop is not None) == ("sop" in bert.heads) and trace.nsp is None
    assert (trace.replaced is not None) == ("replaced" in bert.heads)
    assert (trace.pooled is not None) == ("pooler" in bert.heads)
    layers = bert.config.num_hidden_layers
    assert trace.attentions.shape == (layers, 4, trace.length, trace.length)
    assert trace.hidden_states.shape == (layers + 1, trace.length, 24)
    assert np.isfinite(summarise_heads(trace).entropy).all()
    assert trace.to_dict()["heads"] == sorted(bert.heads)


def test_one_answer_and_many_are_the_same(bert):
    mask = [2] if "mlm" in bert.heads else []
    rows = [(text_for(bert), None, mask), (text_for(bert), text_for(bert), mask)]
    for row, answer in zip(rows, bert.predict_many(rows)):
        alone = bert.predict(*row)
        assert answer.tokens == alone.tokens and (answer.sop is None) == (alone.sop is None)
        if alone.replaced is not None:
            np.testing.assert_allclose(answer.replaced, alone.replaced, atol=1e-5)
            assert len(alone.to_dict()["replaced"]) == len(alone.tokens)
        assert [m.predictions[0].id for m in answer.masks] == [m.predictions[0].id for m in alone.masks]


def test_the_open_model_gives_the_same_states(bert):
    trace = bert.trace(text_for(bert), text_for(bert))
    states = bert.hooked().states(trace.token_ids[None], trace.segments[None])
    for ours, theirs in zip(states, trace.hidden_states, strict=True):
        np.testing.assert_allclose(np.asarray(ours)[0], theirs, atol=1e-5)


def test_gradients_reach_the_token_vectors(bert):
    if "mlm" not in bert.heads:
        pytest.raises(MissingHead, mask_target, bert, bert.trace(text_for(bert)))
        return
    trace = bert.trace(text_for(bert), mask=[2])
    target = mask_target(bert, trace)
    vectors = bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    score, slope = bert.hooked().gradient(vectors, trace.segments[None], target)
    assert slope.shape == (1, trace.length, bert.config.embedding_width)
    step = 1e-2 * slope / np.linalg.norm(slope)
    moved = [bert.hooked().gradient(vectors + sign * step, trace.segments[None], target)[0][0] for sign in (1, -1)]
    assert (moved[0] - moved[1]) / 2e-2 == pytest.approx(np.linalg.norm(slope), rel=0.05)


def test_the_order_of_sentences_can_be_explained(berts):
    bert = berts["albert"]
    trace = bert.trace("the work", "the license of the work")
    for in_order, share in ((True, trace.sop.in_order), (False, trace.sop.swapped)):
        target = sentence_order_target(bert, trace, in_order)
        assert occlusion(bert, trace, target).log_probability == pytest.approx(np.log(share), abs=1e-4)
    actual = gradient_x_input(bert, trace, target)
    assert actual.log_probability == pytest.approx(np.log(trace.sop.swapped), abs=1e-4) and actual.scores.any()
    with pytest.raises(NothingToPredict, match="sentence-order head judges a pair"):
        sentence_order_target(bert, bert.trace("the work"))
    with pytest.raises(MissingHead):
        sentence_order_target(berts["roberta"], berts["roberta"].trace("the work", "the license"))


def test_the_order_of_sentences_hangs_on_parts_and_on_the_texts(berts):
    bert = berts["albert"]
    trace = bert.trace("the work", "the license of the work")
    effect = ablate(bert, trace, Ablation(layers=(1,)))
    assert effect.nsp_after is None and effect.sop_before == pytest.approx(trace.sop, abs=1e-5)
    actual = sweep(bert, trace, every_layer(bert.config))
    change = effect.sop_after.in_order - effect.sop_before.in_order
    assert actual.nsp_changes is None and actual.sop_changes[1] == pytest.approx(change, abs=1e-5)
    assert (np.diff(np.abs(actual.sop_changes)[actual.ranked()]) <= 0).all()
    (outcome,) = predict_variants(bert, trace, [swapped(bert, trace)])
    typed = bert.trace("the license of the work", "the work")
    assert outcome.sop == pytest.approx(typed.sop, abs=1e-5)
    assert outcome.sop_change == pytest.approx(typed.sop.in_order - trace.sop.in_order, abs=1e-5)


def test_a_part_needs_an_answer_to_be_missed_in(berts):
    bert = berts["electra-generator"]
    with pytest.raises(NothingToPredict, match="nothing to predict"):
        sweep(bert, bert.trace("w1 w2"), every_layer(bert.config))


@pytest.mark.parametrize("place, is_replaced", [(2, True), (4, False), (None, True)])
def test_a_token_s_score_can_be_explained(berts, place, is_replaced):
    bert = berts["electra-discriminator"]
    trace = bert.trace("w1 w2 w3", "w4 w5")
    target = replaced_target(bert, trace, place, is_replaced)
    if place is None:
        own = [at for at, source in enumerate(trace.sources) if source]
        assert trace.replaced[target.position] == trace.replaced[own].max()
    share = float(trace.replaced[target.position])
    wanted = np.log(share if is_replaced else 1 - share)
    assert target.label == ("replaced" if is_replaced else "original") and target.head == "replaced"
    vectors = bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    score, slope = bert.hooked().gradient(vectors, trace.segments[None], target)
    assert score[0] == pytest.approx(wanted, abs=1e-5)
    step = 1e-2 * slope / np.linalg.norm(slope)
    moved = [bert.hooked().gradient(vectors + sign * step, trace.segments[None], target)[0][0] for sign in (1, -1)]
    assert (moved[0] - moved[1]) / 2e-2 == pytest.approx(np.linalg.norm(slope), rel=0.05)
    actual = occlusion(bert, trace, target, unit="token")
    assert actual.log_probability == pytest.approx(wanted, abs=1e-5)
    ids = trace.token_ids.copy()
    ids[1] = bert.tokenizer.mask_id
    without = float(replaced_scores(bert, ids, trace.segments)[target.position])
    score_drop = wanted - np.log(without if is_replaced else 1 - without)
    assert actual.scores[1] == pytest.approx(score_drop, abs=1e-5) and not actual.scores[0]
    assert gradient_x_input(bert, trace, target).log_probability == pytest.approx(wanted, abs=1e-5)
    assert abs(integrated_gradients(bert, trace, target, steps=64).convergence_delta) < 0.01
    other = bert.trace("w1 w9 w3", "w4 w5")
    patched = patch_states(bert, trace, other, target)
    assert patched.clean == pytest.approx(wanted, abs=1e-5)
    assert patched.scores[-1, target.position] == pytest.approx(patched.clean, abs=1e-5)


@pytest.mark.parametrize("name, answer", [("albert", "next"), ("electra-discriminator", 2)])
def test_the_likelier_verdict_is_what_is_lost(berts, name, answer):
    bert, parts, judged = berts[name], every_layer(berts[name].config), set()
    for pair in (("w1 w2 w3", "w4 w5"), ("w4 w5", "w1 w2 w3"), ("w7 w2", "w9"), ("w3 w8", "w1 w6")):
        trace = bert.trace(*pair)
        share = trace.sop.in_order if answer == "next" else trace.replaced[answer]
        score_drop = sweep(bert, trace, parts).score_drop(trace, answer)
        for part, one in zip(parts, score_drop):
            effect = ablate(bert, trace, part)
            after = effect.sop_after.in_order if answer == "next" else effect.replaced_after[answer]
            assert one == pytest.approx(max(share, 1 - share) - (after if share >= 0.5 else 1 - after), abs=1e-5)
        judged.add(bool(share >= 0.5))
    assert judged


def test_words_go_while_a_token_stays_judged_so(berts):
    bert = berts["electra-discriminator"]
    trace = bert.trace("w1 w2 w3", "w4 w5")
    target = replaced_target(bert, trace, 2, trace.replaced[2] >= 0.5)
    actual = reduce_input(bert, trace, target)
    assert actual.target_is_top and any(2 in word.positions for word in actual.remaining)
    removed = {position for one in actual.removed for position in one.word.positions}
    kept = [position for position in range(trace.length) if position not in removed]
    share = float(replaced_scores(bert, trace.token_ids[kept], trace.segments[kept])[kept.index(2)])
    likelier = max(share, 1 - share)
    assert (share >= 0.5) == (trace.replaced[2] >= 0.5)
    assert actual.remaining_log_probability == pytest.approx(np.log(likelier), abs=1e-5)


def _any_answer(bert, trace):
    """The likeliest answer of a kind that the model gives."""
    if "mlm" in bert.heads:
        return mask_target(bert, trace)
    return replaced_target(bert, trace, 2, trace.replaced[2] >= 0.5)


def test_changed_words_are_typed_as_they_are_read(bert):
    masks = [2] if "mlm" in bert.heads else []
    trace = bert.trace(text_for(bert), f"{text_for(bert)}.", mask=masks)
    actual = hotflip(bert, trace, _any_answer(bert, trace), most=2, tried=3)
    assert actual.tried and not any(2 in one.word.positions for one in actual.tried)
    for one in (*actual.tried, *actual.applied):
        typed = bert.trace(one.text_a, one.text_b, mask=masks)
        assert typed.length == trace.length and typed.token_ids[one.word.positions[0]] == one.token_id
        changed = set(np.flatnonzero(typed.token_ids != trace.token_ids))
        assert changed <= {place for other in (*actual.applied, one) for place in other.word.positions}
        # The same question, asked of the text as it is typed.
        asked = occlusion(bert, typed, actual.target)
        assert asked.log_probability == pytest.approx(one.log_probability, abs=1e-4)
        assert bert.tokenizer.vocab[one.token_id].strip() == one.new and one.new.isalnum()


def test_a_linear_model_covers_words_of_every_member(bert):
    trace = bert.trace(text_for(bert), mask=[2] if "mlm" in bert.heads else [])
    actual = lime(bert, trace, _any_answer(bert, trace), samples=50)
    assert np.isfinite(actual.scores).all() and actual.scores.any() and 0 < actual.weighted_r2 <= 1


def test_the_order_of_sentences_is_changed_by_other_words(berts):
    bert = berts["albert"]
    trace = bert.trace("the license of the work", "the work")
    actual = hotflip(bert, trace, sentence_order_target(bert, trace, trace.sop.in_order >= 0.5))
    for one in actual.tried:
        typed = bert.trace(one.text_a, one.text_b).sop
        assert one.log_probability == pytest.approx(np.log(typed[actual.target.id]), abs=1e-4)
        assert one.answer.label == ("in order" if typed.in_order >= 0.5 else "swapped")


def test_a_token_to_judge_must_be_there_and_the_head_too(berts):
    bert = berts["electra-discriminator"]
    with pytest.raises(MaskPositionError, match="no token 9"):
        replaced_target(bert, bert.trace("w1 w2"), 9)
    with pytest.raises(MissingHead):
        replaced_target(berts["electra-generator"], berts["electra-generator"].trace("w1 w2"))


def test_every_token_s_score_hangs_on_parts(berts):
    """A layer switched off is a model without it."""
    bert = berts["electra-discriminator"]
    trace = bert.trace("w1 w2 w3", "w4")
    effect = ablate(bert, trace, Ablation(layers=(1,)))
    states = bert.hooked().states(trace.token_ids[None], trace.segments[None])
    head = bert.model.bert_layers["replaced"]
    without = 1 / (1 + np.exp(-np.asarray(head(states[1]))[0].astype(np.float64)))
    np.testing.assert_allclose(effect.replaced_before, trace.replaced, atol=1e-5)
    np.testing.assert_allclose(effect.replaced_after, without, atol=1e-5)
    actual = sweep(bert, trace, every_layer(bert.config))
    np.testing.assert_allclose(actual.replaced_changes[1], without - trace.replaced, atol=1e-5)
    assert actual.nsp_changes is None and actual.class_changes is None
    assert (np.diff(np.abs(actual.replaced_changes).mean(axis=1)[actual.ranked()]) <= 0).all()


def test_embeddings_add_up_to_the_input(bert):
    trace = bert.trace(text_for(bert), text_for(bert))
    parts = embedding_parts(bert, trace)
    batch = {
        "token_ids": trace.token_ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
    }
    wanted = bert.runtime.run(batch, ("embeddings_sum",))["embeddings_sum"][0]
    np.testing.assert_allclose(parts.total, wanted, atol=1e-5)


def test_a_layer_of_a_group_has_its_groups_kernels(berts):
    kernels = output_kernels(berts["albert"])
    assert len(kernels) == 4 and np.array_equal(kernels[0], kernels[1])
    assert not np.array_equal(kernels[1], kernels[2])


def test_what_a_model_cannot_do_is_said(berts):
    with pytest.raises(MissingHead, match="next-sentence"):
        berts["roberta"].predict("the work", "the license")
    with pytest.raises(MissingHead, match="masked language"):
        berts["electra-discriminator"].predict("w1 w2", mask=["w1"])
    with pytest.raises(NothingToPredict):
        berts["albert"].predict("the work")
    assert berts["albert"].predict("the work", "the license").sop.swapped <= 1


def test_a_text_that_is_cut_inside_a_character_is_compared_with_the_base_model(berts):
    bert, text = berts["roberta"], "the work \N{GRINNING FACE} of the license"
    whole = bert.trace(text)
    split = [at for at, span in enumerate(whole.offsets) if span and span == whole.offsets[at - 1]]
    trace = bert.trace(text, max_length=split[0] + 1)
    assert trace.length == split[0] + 1 and bert.trace(*trace.read_texts()).tokens != trace.tokens
    assert (
        trace.tokens[:-1] == whole.tokens[: trace.length - 1]
        and whole.tokens == bert.trace(text, max_length=999).tokens
    )
    np.testing.assert_allclose(
        fine_tuning_divergence(bert, trace, str(GOLDEN_FOLDERS / "roberta")).divergences, 0, atol=1e-9
    )


def test_both_ways_of_writing_a_mask_are_understood(berts):
    own, common = (berts["roberta"].trace(f"the {mask} of work") for mask in ("<mask>", "[MASK]"))
    assert own.tokens == common.tokens and own.masks == common.masks and len(own.masks) == 1
    assert own.offsets[own.masks[0]] == (4, 10)
    rows = [TextRow(1, f"the {mask} of work") for mask in ("<mask>", "[MASK]")]
    assert [len(one.masks) for one in score_rows(berts["roberta"], rows, ("masks",), "last")] == [1, 1]


def test_a_guess_is_put_into_the_text_as_it_would_be_read(berts):
    bert = berts["roberta"]
    trace = bert.trace("the <mask> work")
    place = trace.masks[0]
    assert fill_text(trace, {place: bert.tokenizer.spelling(" the")}, bert.tokenizer)[0] == "the the work"
    assert fill_text(trace, {place: bert.tokenizer.spelling("s")}, bert.tokenizer)[0] == "thes work"
    assert fill_text(trace, {place: "of"}, bert.tokenizer)[0] == "the of work"
    trace = bert.trace("the <mask>ing work")
    assert fill_text(trace, {trace.masks[0]: "of"}, bert.tokenizer)[0] == "the ofing work"


@pytest.mark.parametrize("name", ["roberta", "albert"])
def test_guesses_for_several_pieces_of_one_letter_are_all_put_into_the_text(berts, name):
    trace = berts[name].trace("the é work", mask=["é"])
    assert {trace.offsets[place][0] for place in trace.masks} == {4}
    guesses = dict(zip(trace.masks, ["dog", "##ing"], strict=True))
    assert fill_text(trace, guesses, berts[name].tokenizer)[0] == "the doging work"


def test_a_token_is_found_as_a_person_writes_it(berts):
    bert = berts["roberta"]
    trace = bert.trace("the <mask> work")
    assert mask_target(bert, trace, token="the").label == " the"
    assert mask_target(bert, trace, token="##s").label == "s"
    with pytest.raises(InputError, match="made of"):
        mask_target(bert, trace, token="licensework")


def test_members_with_different_tokens_are_compared(berts):
    actual = compare(
        *(berts[name].trace("the work of a license", mask=["license"]) for name in ("roberta", "albert")),
        *(berts[name].tokenizer for name in ("roberta", "albert")),
        2,
        4,
    )
    assert actual.common_tokens > 20 and actual.layers == ((0, 0), (0, 1), (1, 2), (1, 3))


def test_each_mask_of_several_pieces_of_one_letter_is_compared(berts):
    traces = {name: berts[name].trace("the é work", mask=["é"]) for name in ("roberta", "albert", "distilbert")}
    roberta, albert = ((traces[name], berts[name].tokenizer) for name in ("roberta", "albert"))
    for (trace_a, tokenizer_a), (trace_b, tokenizer_b) in ((roberta, roberta), (roberta, albert)):
        layers = (len(trace_a.attentions), len(trace_b.attentions))
        masks = compare(trace_a, trace_b, tokenizer_a, tokenizer_b, *layers).masks
        assert [(one.position_a, one.position_b) for one in masks] == list(zip(trace_a.masks, trace_b.masks))
        assert len(masks) == 2
    actual = compare(roberta[0], traces["distilbert"], roberta[1], berts["distilbert"].tokenizer, 2, 2)
    assert len(actual.masks) == len(traces["distilbert"].masks) == 1 and actual.unmatched_a == roberta[0].masks[1:]


def test_the_game_of_generator_and_discriminator(berts):
    text = " ".join(f"w{number}" for number in range(1, 21))
    game = replace_and_detect(berts["electra-generator"], berts["electra-discriminator"], text, share=0.25, seed=3)
    assert len(game.positions) == 5
    changed = [ours != theirs for ours, theirs in zip(game.tokens, game.original_tokens)]
    assert game.replaced.tolist() == changed and set(np.flatnonzero(game.replaced)) <= set(game.positions)
    ids = [berts["electra-generator"].tokenizer.token_to_id(token) for token in game.tokens]
    again = replaced_scores(berts["electra-discriminator"], ids, np.zeros(len(ids)))
    assert np.array_equal(game.scores, again)
    assert game.true_positives == sum(changed[i] and game.scores[i] > 0.5 for i in range(len(ids)))
    assert replace_and_detect(
        berts["electra-generator"], berts["electra-discriminator"], text, mask=["w3"]
    ).positions == (3,)


def test_a_game_needs_one_vocabulary_and_both_heads(berts):
    with pytest.raises(InputError, match="vocabular"):
        replace_and_detect(berts["roberta"], berts["electra-discriminator"], "w1 w2")
    with pytest.raises(MissingHead):
        replace_and_detect(berts["electra-generator"], berts["electra-generator"], "w1 w2")


@pytest.fixture(scope="module")
def others():
    """The same models with other weights."""
    changed = {}
    for name in ("albert", "electra-discriminator"):
        bert = bert_tf.load(GOLDEN_FOLDERS / name)
        randomise(bert.model, 7)
        changed[name] = Bert(bert.config, bert.tokenizer, bert.model, name=name)
    return changed


ORDER = (TextRow(1, "the work", "the license of the work"), TextRow(2, "the license"), TextRow(3, "of the", "work the"))
SCORED = (TextRow(1, "w1 w2 w3"), TextRow(2, "w4", "w5 w6"))


def test_two_verdicts_on_the_order_are_subtracted(berts, others):
    pair = berts["albert"], others["albert"]
    tokenizer = pair[0].tokenizer
    traces = [bert.trace(ORDER[0].text_a, ORDER[0].text_b) for bert in pair]
    actual = compare(*traces, tokenizer, tokenizer, 4, 4)
    assert actual.in_order_difference == pytest.approx(traces[0].sop.in_order - traces[1].sop.in_order)
    assert actual.in_order_difference != 0 and actual.is_next_difference is None and actual.replaced_difference is None
    rows = agreement(*pair, ORDER, "given").rows
    assert [one.row.number for one in rows][-1] == 2 and rows[-1].in_order_difference is None
    apart = [one.in_order_difference for one in rows[:2]]
    assert apart == sorted(apart, reverse=True) and apart[0] > 0
    actual = agreement(*pair, ORDER, "given")
    same = [(one.in_order_a > 0.5) == (one.in_order_b > 0.5) for one in rows[:2]]
    assert (actual.orders, actual.pairs) == (2, 0) and actual.same_order == pytest.approx(np.mean(same))


def test_two_scores_of_every_token_are_subtracted(berts, others):
    pair = berts["electra-discriminator"], others["electra-discriminator"]
    actual = agreement(*pair, SCORED, "last")
    for one in actual.rows:
        scores = [bert.trace(one.row.text_a, one.row.text_b).replaced for bert in pair]
        own = [place for place, source in enumerate(pair[0].trace(one.row.text_a, one.row.text_b).sources) if source]
        assert one.places == () and one.replaced_difference == pytest.approx(
            np.abs(scores[0] - scores[1])[own].mean(), abs=1e-5
        )
    assert actual.replaced_rows == 2 and actual.replaced_difference > 0


def test_rows_are_asked_for_the_order_and_for_replaced_tokens(berts):
    actual = score_rows(berts["albert"], ORDER, ("next", "order"), "given")
    alone = [berts["albert"].trace(row.text_a, row.text_b).sop for row in ORDER]
    assert [one.in_order for one in actual] == pytest.approx([one and one.in_order for one in alone], abs=1e-5)
    assert all(one.is_next is None and one.problem is None for one in actual)
    assert summarise_rows(actual).ordered == np.mean([one.in_order > 0.5 for one in alone if one])
    actual = score_rows(berts["electra-discriminator"], SCORED)
    for row, one in zip(SCORED, actual):
        trace = berts["electra-discriminator"].trace(row.text_a, row.text_b)
        own = [(token, score) for token, score, side in zip(trace.tokens, trace.replaced, trace.sources) if side]
        assert [token for token, _ in one.replaced] == [token for token, _ in own]
        assert [score for _, score in one.replaced] == pytest.approx([score for _, score in own], abs=1e-5)
        assert one.suspected == sum(score > 0.5 for _, score in own)
        assert one.most_likely_replaced[1] == max(score for _, score in one.replaced)
    summary = summarise_rows(actual)
    assert summary.scored == 6 and summary.suspected == sum(one.suspected for one in actual) / 6
