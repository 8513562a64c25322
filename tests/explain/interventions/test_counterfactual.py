"""Counterfactual inputs against the same inputs typed by hand."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.analyses import analysis, check_model
from bert_tf.errors import Cancelled, InputError, MissingHead, NothingToPredict
from bert_tf.explain import jensen_shannon
from bert_tf.explain.interventions.counterfactual import counterfactuals, predict_variants, without_each_word
from bert_tf.explain.interventions.variants import left_context, right_context, swapped, with_word, without_word

GOLDEN_FOLDERS = Path(__file__).parents[2] / "golden" / "family"


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace("the cats sat on the [MASK] in the park", "it ran to the river", mask=["ran"])


def _is(bert, trace, variant, texts, mask=()):
    """The variant is that input, and is answered as the input typed is."""
    typed = bert.trace(*texts, mask=mask)
    np.testing.assert_array_equal(variant.token_ids, typed.token_ids)
    np.testing.assert_array_equal(variant.segment_ids, typed.segments)
    assert variant.tokens == typed.tokens and variant.masks == typed.masks
    (outcome,) = predict_variants(bert, trace, [variant], top_k=3)
    if typed.masks:
        for mine, theirs in zip(outcome.masks, bert.fill_mask(typed, 3)):
            assert [p.id for p in mine.predictions] == [p.id for p in theirs.predictions]
            assert mine.position == theirs.position
    assert (outcome.nsp is None) == (typed.nsp is None) and (outcome.sop is None) == (typed.sop is None)
    if typed.nsp:
        assert outcome.nsp.is_next == pytest.approx(typed.nsp.is_next, abs=1e-5)
        assert outcome.nsp_change == pytest.approx(typed.nsp.is_next - trace.nsp.is_next, abs=1e-5)
    return outcome, typed


def test_swapped(tiny_bert, trace):
    variant = swapped(tiny_bert, trace)
    outcome, typed = _is(
        tiny_bert, trace, variant, ("it ran to the river", "the cats sat on the [MASK] in the park"), ["ran"]
    )
    assert variant.rows == (1, 0)
    for place, row in enumerate(variant.rows):
        p, q = (np.exp(logits) / np.exp(logits).sum() for logits in (trace.logits[row], typed.logits[place]))
        assert outcome.divergences[place] == pytest.approx(jensen_shannon(p, q), abs=1e-4)
        assert outcome.log_probability_changes[place] == pytest.approx(np.log(q[p.argmax()] / p.max()), abs=1e-3)


def test_a_word_of_several_pieces_left_out_and_replaced(tiny_bert, trace):
    cats = trace.words()[1]
    _is(
        tiny_bert,
        trace,
        without_word(tiny_bert, trace, cats),
        ("the sat on the [MASK] in the park", "it ran to the river"),
        ["ran"],
    )
    _is(
        tiny_bert,
        trace,
        with_word(tiny_bert, trace, cats, "big dogs"),
        ("the big dogs sat on the [MASK] in the park", "it ran to the river"),
        ["ran"],
    )


def test_a_masked_word_replaced_is_no_mask_any_more(tiny_bert, trace):
    ran = next(word for word in trace.words() if word.text == "ran")
    variant = with_word(tiny_bert, trace, ran, "sat")
    _is(tiny_bert, trace, variant, ("the cats sat on the [MASK] in the park", "it sat to the river"))
    assert variant.rows == (0,)


def test_the_context_before_and_after(tiny_bert, trace):
    first, second = trace.masks
    _is(tiny_bert, trace, left_context(tiny_bert, trace, first), ("the cats sat on the [MASK]",))
    _is(
        tiny_bert,
        trace,
        right_context(tiny_bert, trace, first),
        ("[MASK] in the park", "it ran to the river"),
        ["ran"],
    )
    _is(
        tiny_bert,
        trace,
        left_context(tiny_bert, trace, second),
        ("the cats sat on the [MASK] in the park", "it ran"),
        ["ran"],
    )
    _is(tiny_bert, trace, right_context(tiny_bert, trace, second), ("ran to the river",), ["ran"])


def test_pieces_masked_together_stay_together(tiny_bert):
    trace = tiny_bert.trace("the cats sat", mask=["cats"])
    for mask in trace.masks:
        assert left_context(tiny_bert, trace, mask).tokens == ("[CLS]", "the", "[MASK]", "[MASK]", "[SEP]")
        assert right_context(tiny_bert, trace, mask).tokens == ("[CLS]", "[MASK]", "[MASK]", "sat", "[SEP]")


def test_many_at_once_are_each_alone(tiny_bert, trace):
    variants = [
        swapped(tiny_bert, trace),
        left_context(tiny_bert, trace, trace.masks[0]),
        *(without_word(tiny_bert, trace, word) for word in trace.words()),
    ]
    for one, variant in zip(predict_variants(tiny_bert, trace, variants), variants):
        (alone,) = predict_variants(tiny_bert, trace, [variant])
        np.testing.assert_allclose(one.log_probability_changes, alone.log_probability_changes, atol=1e-4)
        assert (one.nsp is None) == (not variant.paired)
    assert predict_variants(tiny_bert, trace, []) == ()


def test_no_pass_has_more_tokens_than_a_batch(tiny_bert, trace, monkeypatch):
    most, shapes, seen, run = 2 * trace.length, [], [], tiny_bert.runtime.run

    def counted(batch, outputs):
        shapes.append(batch["token_ids"].shape)
        return run(batch, outputs)

    variants = [
        left_context(tiny_bert, trace, trace.masks[0]),
        swapped(tiny_bert, trace),
        right_context(tiny_bert, trace, trace.masks[1]),
        *(without_word(tiny_bert, trace, word) for word in trace.words()),
    ]
    alone = [predict_variants(tiny_bert, trace, [variant], 3)[0] for variant in variants]
    monkeypatch.setattr("bert_tf.explain.interventions.counterfactual.TOKENS_PER_BATCH", most)
    monkeypatch.setattr(tiny_bert.runtime, "run", counted)
    actual = predict_variants(tiny_bert, trace, variants, 3, progress=lambda *at: seen.append(at))
    assert max(rows * tokens for rows, tokens in shapes) <= most and len(shapes) == len(seen) < len(variants)
    assert sum(rows for rows, _ in shapes) == len(variants) and seen[-1] == (len(variants), len(variants))
    assert [one.variant for one in actual] == variants
    for one, other in zip(actual, alone):
        assert [mask.position for mask in one.masks] == list(one.variant.masks)
        for mask, wanted in zip(one.masks, other.masks):
            assert [p.id for p in mask.predictions] == [p.id for p in wanted.predictions]
            probabilities = [p.probability for p in wanted.predictions]
            assert [p.probability for p in mask.predictions] == pytest.approx(probabilities, abs=1e-5)
        np.testing.assert_allclose(one.divergences, other.divergences, atol=1e-5)
        assert one.nsp_change == (None if other.nsp_change is None else pytest.approx(other.nsp_change, abs=1e-5))
    with pytest.raises(Cancelled, match=f"of {len(counterfactuals(tiny_bert, trace).variants)}"):
        counterfactuals(tiny_bert, trace, progress=lambda done, total: False)


def test_each_word_is_left_out_alone_and_hidden_ones_stay(tiny_bert, trace, monkeypatch):
    # Three at a time, so that words are asked about in several passes.
    monkeypatch.setattr("bert_tf.explain.interventions.counterfactual.TOKENS_PER_BATCH", 3 * trace.length)
    seen = []
    actual = without_each_word(tiny_bert, trace, 3, progress=lambda *at: seen.append(at))
    assert [word.text for word, _ in actual] == "the cats sat on the in the park it to the river".split()
    assert seen == [(3, 12), (6, 12), (9, 12), (12, 12)]
    for word, outcome in actual:
        (alone,) = predict_variants(tiny_bert, trace, [without_word(tiny_bert, trace, word)], 3)
        assert outcome.variant.tokens == alone.variant.tokens and len(outcome.masks) == 2
        np.testing.assert_allclose(outcome.divergences, alone.divergences, atol=1e-5)
        assert outcome.nsp_change == pytest.approx(alone.nsp_change, abs=1e-5)
    with pytest.raises(Cancelled):
        without_each_word(tiny_bert, trace, progress=lambda done, total: done < 4)


def test_the_only_word_of_a_text_stays(tiny_bert):
    actual = without_each_word(tiny_bert, tiny_bert.trace("the cat", "dog"))
    assert [word.text for word, _ in actual] == ["the", "cat"]


def test_what_makes_no_sense_is_refused(tiny_bert, trace):
    single = tiny_bert.trace("cat")
    with pytest.raises(InputError, match="only one text"):
        swapped(tiny_bert, single)
    with pytest.raises(InputError, match="Nothing would be left"):
        without_word(tiny_bert, single, single.words()[0])
    with pytest.raises(InputError, match="Nothing would be left"):
        pair = tiny_bert.trace("the cat", "dog")
        without_word(tiny_bert, pair, pair.words()[2])
    with pytest.raises(InputError, match="give a word"):
        with_word(tiny_bert, trace, trace.words()[0], " ")
    with pytest.raises(InputError, match="reads 128"):
        with_word(tiny_bert, trace, trace.words()[0], "cat " * 130)
    with pytest.raises(InputError, match="Token 1 is not masked"):
        left_context(tiny_bert, trace, 1)
    with pytest.raises(NothingToPredict):
        predict_variants(tiny_bert, single, [with_word(tiny_bert, single, single.words()[0], "dog")])


@pytest.mark.parametrize("second", [None, "any work"])
def test_a_discriminator_has_nothing_to_predict(second):
    bert = bert_tf.load(GOLDEN_FOLDERS / "electra-discriminator")
    assert "replaced" in bert.heads and not {"mlm", "nsp", "sop"} & set(bert.heads)
    trace = bert.trace("the work of the license", second)
    with pytest.raises(MissingHead):
        predict_variants(bert, trace, [with_word(bert, trace, trace.words()[0], "any")])
    with pytest.raises(MissingHead, match="no masked language model head, no next-sentence head and no sentence-order"):
        check_model(analysis("counterfactual"), bert)


@pytest.fixture(scope="module", params=["roberta", "albert"])
def member(request):
    """A member whose pieces know of the space before them; RoBERTa also packs a pair in another way."""
    return bert_tf.load(GOLDEN_FOLDERS / request.param)


FIRST, SECOND = "the [MASK] of work", "any work is"


@pytest.mark.parametrize("second", [None, SECOND])
@pytest.mark.parametrize("place", range(4))
def test_a_word_less_is_the_text_typed_without_it(member, second, place):
    trace, words = member.trace(FIRST, second, mask=[]), FIRST.split()
    word = [word for word in trace.words() if word.source == "a"][place]
    del words[place]
    typed = (" ".join(words), second) if second else (" ".join(words),)
    variant = without_word(member, trace, word)
    if "[MASK]" in words or second and "sop" in member.heads:
        _is(member, trace, variant, typed)
    else:
        assert variant.token_ids.tolist() == member.trace(*typed).token_ids.tolist() and not variant.masks


@pytest.mark.parametrize("place", range(3))
def test_a_word_less_in_the_second_text(member, place):
    trace, words = member.trace(FIRST, SECOND), SECOND.split()
    word = [word for word in trace.words() if word.source == "b"][place]
    del words[place]
    _is(member, trace, without_word(member, trace, word), (FIRST, " ".join(words)))


@pytest.mark.parametrize("second", [None, SECOND])
@pytest.mark.parametrize("place", [0, 2, 3])
def test_another_word_is_the_text_typed_with_it(member, second, place):
    trace, words = member.trace(FIRST, second), FIRST.split()
    words[place] = "any license"
    typed = (" ".join(words), second) if second else (" ".join(words),)
    _is(member, trace, with_word(member, trace, trace.words()[place], " any license "), typed)


def test_another_word_in_the_second_text(member):
    trace = member.trace(FIRST, SECOND)
    for place, typed in enumerate(("the work is", "any the is", "any work the"), start=4):
        _is(member, trace, with_word(member, trace, trace.words()[place], "the"), (FIRST, typed))


def test_texts_swapped_and_one_side_of_another_packing(member):
    trace = member.trace("any work is", "the work [MASK] of the license")
    (mask,) = trace.masks
    _is(member, trace, swapped(member, trace), ("the work [MASK] of the license", "any work is"))
    _is(member, trace, left_context(member, trace, mask), ("any work is", "the work [MASK]"))
    _is(member, trace, right_context(member, trace, mask), ("[MASK] of the license",))
    trace = member.trace("the work [MASK] of the license", "any work is")
    (mask,) = trace.masks
    _is(member, trace, left_context(member, trace, mask), ("the work [MASK]",))
    _is(member, trace, right_context(member, trace, mask), ("[MASK] of the license", "any work is"))


@pytest.mark.parametrize(
    "text, word, instead, typed",
    [
        ("(the work) [MASK].", "the", "any", "(any work) [MASK]."),
        ("(the work) [MASK].", "work", "", "(the ) [MASK]."),
        ("(work) [MASK].", "work", "", "() [MASK]."),
        ("[MASK] work, the", ",", "", "[MASK] work the"),
        ("[MASK] well-known work", "-", "", "[MASK] well known work"),
        ("any  the [MASK]", "any", "", "the [MASK]"),
        (" any the [MASK]", "any", "", " the [MASK]"),
        ("any\nthe [MASK]", "the", "license", "any\nlicense [MASK]"),
    ],
)
def test_what_touches_a_word_is_read_with_its_successor(member, text, word, instead, typed):
    trace = member.trace(text)
    actual = next(one for one in trace.words() if one.text == word)
    variant = with_word(member, trace, actual, instead) if instead else without_word(member, trace, actual)
    _is(member, trace, variant, (typed,))


def test_a_hidden_word_stays_hidden_where_it_comes_first(member):
    trace = member.trace("any work of the license", mask=["work"])
    variant = without_word(member, trace, trace.words()[0])
    assert len(variant.masks) == len(trace.masks) and variant.rows == tuple(range(len(trace.masks)))
    kept = trace.token_ids[list(range(trace.masks[0], trace.length))]
    assert variant.token_ids[1:].tolist() == kept.tolist()
    trace = member.trace("work of any license", mask=["any"])
    assert "any" not in "".join(without_word(member, trace, trace.words()[0]).tokens)


def test_a_cut_off_rest_does_not_come_back(member):
    trace = member.trace("the work " * 11 + "license " * 20)
    assert sum(trace.truncated)
    variant = with_word(member, trace, trace.words()[-1], "of")
    assert variant.tokens[-2] == " of"
