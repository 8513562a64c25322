"""HotFlip against every word of the vocabulary tried by hand, and against the slope worked out anew."""

from dataclasses import replace

import numpy as np
import pytest

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import Target, hotflip, mask_target, next_sentence_target
from bert_tf.explain.attribution.hotflip import is_word, replaceable_words

TEXTS = ("the cats sat on the [MASK] in the park", "it ran to the big river.")


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace(*TEXTS)


@pytest.fixture(scope="module", params=["mask", "word", "next sentence"])
def target(request, tiny_bert, trace):
    if request.param == "next sentence":
        return next_sentence_target(tiny_bert, trace, trace.nsp.is_next > 0.5)
    return mask_target(tiny_bert, trace, None if request.param == "mask" else 4)


def _answers(bert, trace, target):
    """Log-probabilities of all answers by the model's own passes, float64 [K]."""
    batch = {
        "token_ids": trace.token_ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
        "mask_positions": np.array([[target.position or 0]], np.int32),
    }
    actual = bert.runtime.run(batch, ("mlm_logits", "nsp_logits"))
    logits = (actual["nsp_logits"][0] if target.position is None else actual["mlm_logits"][0, 0]).astype(np.float64)
    return logits - np.log(np.exp(logits).sum())


def _is_word(token):
    return token.isalnum()  # neither "##s" nor "[MASK]" nor a comma


def test_the_words_that_may_change_are_whole_and_not_asked_about(tiny_bert, trace, target):
    words = replaceable_words(tiny_bert.tokenizer, trace, target)
    # "cats" is two pieces, the stop no word, the mask hidden; the fourth token is "sat".
    wanted = ["the", "sat", "on", "the", "in", "the", "park", "it", "ran", "to", "the", "big", "river"]
    if target.position == 4:
        wanted.remove("sat")
    wanted.remove("to")  # in this vocabulary it is two pieces
    assert [word.text for word in words] == wanted


def test_the_first_flip_is_the_worst_of_those_the_slope_likes_best(tiny_bert, trace, target):
    actual = hotflip(tiny_bert, trace, target, most=1, tried=3)
    tokenizer, hooked = tiny_bert.tokenizer, tiny_bert.hooked()
    vectors = hooked.token_vectors(trace.token_ids[None]).numpy()
    _, slope = hooked.gradient(vectors, trace.segments[None], target)
    table = hooked.token_vectors(np.arange(tokenizer.vocab_size)).numpy()
    answer, tried = _answers(tiny_bert, trace, target), {}
    assert actual.target_is_top and actual.log_probability == pytest.approx(answer[target.id], abs=1e-4)
    for word in replaceable_words(tokenizer, trace, target):
        (place,) = word.positions
        estimates = {
            new: float(slope[0, place] @ (table[new] - vectors[0, place]))
            for new, token in enumerate(tokenizer.vocab)
            if _is_word(token) and new != trace.token_ids[place]
        }
        best = sorted(estimates, key=estimates.get)[:3]
        mine = [one for one in actual.tried if one.word == word]
        assert {one.token_id for one in mine} == set(best)
        for one in mine:
            assert one.estimate == pytest.approx(estimates[one.token_id], abs=1e-4)
            tried[word, one.token_id] = one
    assert len(tried) == len(actual.tried)
    for one in actual.tried:
        # Typed as it says, the text is read by another pass.
        typed = tiny_bert.trace(one.text_a, one.text_b)
        answers = _answers(tiny_bert, typed, target)
        assert typed.token_ids[one.word.positions[0]] == one.token_id and one.new == tokenizer.vocab[one.token_id]
        assert one.log_probability == pytest.approx(answers[target.id], abs=2e-4)
        assert one.change == pytest.approx(answers[target.id] - answer[target.id], abs=2e-4)
        assert one.answer_log_probability == pytest.approx(answers.max(), abs=2e-4)
        assert one.flips_prediction == (answers.argmax() != target.id)
        assert one.answer.id == answers.argmax()
    scores = [one.log_probability for one in actual.tried]
    assert scores == sorted(scores) and actual.applied == actual.tried[:1]


def test_the_estimate_is_the_slope_of_a_small_step(tiny_bert, trace, target):
    one = hotflip(tiny_bert, trace, target, most=1).tried[0]
    (place,), hooked = one.word.positions, tiny_bert.hooked()
    vectors, ends = hooked.token_vectors(trace.token_ids[None]).numpy(), []
    step = hooked.token_vectors([one.token_id]).numpy()[0] - vectors[0, place]
    for share in (0.01, -0.01):
        moved = vectors.copy()
        moved[0, place] += share * step
        ends.append(float(hooked.gradient(moved, trace.segments[None], target)[0][0]))
    assert one.estimate == pytest.approx((ends[0] - ends[1]) / 0.02, rel=0.05, abs=0.005)


def test_flips_follow_each_other_until_the_answer_is_another(tiny_bert, trace, target):
    actual = hotflip(tiny_bert, trace, target, most=10, tried=1)
    assert actual.applied and actual.flipped == actual.applied[-1].flips_prediction
    assert not any(one.flips_prediction for one in actual.applied[:-1])
    assert len({one.word for one in actual.applied}) == len(actual.applied)
    score, now = actual.log_probability, trace
    for number, one in enumerate(actual.applied):
        # Each is the first flip of the text as the flips before have left it, among the words not changed yet.
        again = hotflip(tiny_bert, now, target, most=1, tried=1)
        places = {before.word.positions for before in actual.applied[:number]}
        best = next(other for other in again.tried if other.word.positions not in places)
        assert (best.word.positions, best.token_id) == (one.word.positions, one.token_id)
        assert one.estimate == pytest.approx(best.estimate, abs=1e-3)
        assert one.change == pytest.approx(one.log_probability - score, abs=1e-6) and one.change < 0
        now, score = tiny_bert.trace(one.text_a, one.text_b), one.log_probability
        assert _answers(tiny_bert, now, target)[target.id] == pytest.approx(score, abs=2e-4)


def test_as_many_words_are_changed_as_are_allowed(tiny_bert, trace):
    target = next_sentence_target(tiny_bert, trace, trace.nsp.is_next > 0.5)
    counts = [len(hotflip(tiny_bert, trace, target, most=most, tried=1).applied) for most in (1, 2, 10)]
    assert counts[0] == 1 and counts == sorted(counts) and counts[1] <= 2


def test_an_answer_that_is_not_the_likeliest_is_left_alone(tiny_bert, trace, target):
    worst = Target(target.position, int(_answers(tiny_bert, trace, target).argmin()), "?")
    actual = hotflip(tiny_bert, trace, worst)
    assert not (actual.target_is_top or actual.tried or actual.applied or actual.flipped)


def test_texts_without_a_word_to_change_have_no_flip(tiny_bert):
    trace = tiny_bert.trace("cats [MASK].")
    actual = hotflip(tiny_bert, trace, mask_target(tiny_bert, trace))
    assert actual.target_is_top and not actual.tried and not actual.applied


def test_a_text_that_was_cut_is_changed_as_far_as_it_was_read(tiny_bert, trace):
    whole, tokenizer = " ".join(TEXTS[0].split() * 3), tiny_bert.tokenizer
    encoding = tokenizer.encode(whole, max_length=12)
    short = tiny_bert.trace(whole[: encoding.offsets[-2][1]])
    cut = replace(short, text_a=whole, truncated=encoding.truncated)
    target = mask_target(tiny_bert, short)
    assert short.length == 12 and cut.truncated
    wanted, actual = (hotflip(tiny_bert, one, target) for one in (short, cut))
    assert actual.tried and [(one.word, one.new) for one in actual.tried] == [
        (one.word, one.new) for one in wanted.tried
    ]
    assert all(len(one.text_a.split()) == len(whole.split()) for one in actual.tried)


@pytest.mark.parametrize("text", ["हिन्दी", "தமிழ்", "ที่", "नमस्ते", "cafe\u0301", "B2"])
def test_a_word_may_be_written_with_marks(text):
    assert is_word(text)


@pytest.mark.parametrize("text", ["", "##s", "[MASK]", "a-b", "\u093f", "a b", "।"])
def test_what_is_no_word_is_not_taken_for_one(text):
    assert not is_word(text)


def test_inputs_in_blocks_give_the_same_and_can_be_cancelled(tiny_bert, trace, target, monkeypatch):
    whole, seen = hotflip(tiny_bert, trace, target), []
    monkeypatch.setattr("bert_tf.inference.batching.TOKENS_PER_BATCH", 2 * trace.length)
    parts = hotflip(tiny_bert, trace, target, progress=lambda *at: seen.append(at))
    assert [(one.word, one.new) for one in parts.applied] == [(one.word, one.new) for one in whole.applied]
    free = len(replaceable_words(tiny_bert.tokenizer, trace, target))
    assert {total for _, total in seen} == {2 * (3 * free - 3)}
    counts = [done for done, _ in seen]
    assert counts == sorted(set(counts)) and counts[0] == 2 and 2 * free in counts
    with pytest.raises(Cancelled, match="Stopped after"):
        hotflip(tiny_bert, trace, target, progress=lambda done, total: False)


@pytest.mark.parametrize("name, number", [("most", 0), ("most", 11), ("tried", 1.5), ("tried", True)])
def test_bad_numbers_are_refused(tiny_bert, trace, target, name, number):
    with pytest.raises(InputError, match=f"{name} must be a whole number"):
        hotflip(tiny_bert, trace, target, **{name: number})
