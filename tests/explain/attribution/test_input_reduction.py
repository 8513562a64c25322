"""Input reduction against the words taken away by hand."""

import numpy as np
import pytest

from bert_tf.errors import Cancelled
from bert_tf.explain import next_sentence_target, reduce_input
from bert_tf.explain.attribution.target import mask_target

TEXTS = ("the cats sat on the [MASK] in the park", "it ran to the big river")


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace(*TEXTS)


@pytest.fixture(scope="module", params=["mask", "word", "next sentence"])
def target(request, tiny_bert, trace):
    if request.param == "next sentence":
        return next_sentence_target(tiny_bert, trace, trace.nsp.is_next > 0.5)
    return mask_target(tiny_bert, trace, None if request.param == "mask" else 3)


def _answers(bert, trace, target, away=()):
    """Log-probabilities of all answers by the model itself, float64 [K], without some words."""
    hidden = {position for word in away for position in word.positions}
    kept = [position for position in range(trace.length) if position not in hidden]
    batch = {
        "token_ids": trace.token_ids[None, kept],
        "segment_ids": trace.segments[None, kept],
        "padding_mask": np.ones((1, len(kept)), np.int32),
        "mask_positions": np.array([[kept.index(target.position or 0)]], np.int32),
    }
    actual = bert.runtime.run(batch, ("mlm_logits", "nsp_logits"))
    logits = actual["nsp_logits"][0] if target.position is None else actual["mlm_logits"][0, 0]
    logits = logits.astype(np.float64)
    return logits - np.log(np.exp(logits).sum())


def _may_go(trace, target, away):
    left = [word for word in trace.words() if word not in away]
    alone = {source for source in "ab" if sum(word.source == source for word in left) == 1}
    asked = {*trace.masks, target.position}
    return [word for word in left if word.source not in alone and not asked & set(word.positions)]


def test_each_time_the_word_goes_that_is_missed_least(tiny_bert, trace, target):
    actual = reduce_input(tiny_bert, trace, target)
    assert actual.target_is_top and actual.removed
    assert actual.log_probability == pytest.approx(_answers(tiny_bert, trace, target)[target.id], abs=1e-4)
    away = []
    for one in actual.removed:
        allowed = {}
        for word in _may_go(trace, target, away):
            answers = _answers(tiny_bert, trace, target, [*away, word])
            if answers.argmax() == target.id:
                allowed[word] = answers[target.id]
        assert one.log_probability == pytest.approx(allowed[one.word], abs=2e-4)
        assert allowed[one.word] >= max(allowed.values()) - 2e-4
        away.append(one.word)
    # No word of those that are left can go.
    for word in _may_go(trace, target, away):
        assert _answers(tiny_bert, trace, target, [*away, word]).argmax() != target.id
    assert actual.remaining == tuple(word for word in trace.words() if word not in away)
    assert actual.remaining_log_probability == actual.removed[-1].log_probability


def test_hidden_words_and_the_last_of_a_text_stay(tiny_bert):
    trace = tiny_bert.trace("the [MASK]", "it")
    for target in (mask_target(tiny_bert, trace), next_sentence_target(tiny_bert, trace, trace.nsp.is_next > 0.5)):
        actual = reduce_input(tiny_bert, trace, target)
        assert {word.text for word in actual.remaining} >= {"[MASK]", "it"}


def test_an_answer_that_is_not_the_likeliest_loses_no_word(tiny_bert, trace, target):
    answers = _answers(tiny_bert, trace, target)
    worst = type(target)(target.position, int(answers.argmin()), "?")
    actual = reduce_input(tiny_bert, trace, worst)
    assert not actual.target_is_top and not actual.removed and actual.remaining == trace.words()
    assert actual.remaining_log_probability == actual.log_probability == pytest.approx(answers.min(), abs=1e-4)


def test_inputs_in_blocks_give_the_same_and_can_be_cancelled(tiny_bert, trace, target, monkeypatch):
    whole, seen = reduce_input(tiny_bert, trace, target), []
    monkeypatch.setattr("bert_tf.explain.attribution.input_reduction.TOKENS_PER_BATCH", 2 * trace.length)
    parts = reduce_input(tiny_bert, trace, target, progress=lambda *at: seen.append(at))
    assert [one.word for one in parts.removed] == [one.word for one in whole.removed]
    free = len(_may_go(trace, target, []))
    assert {total for _, total in seen} == {free * (free + 1) // 2}
    counts = [done for done, _ in seen]
    assert counts == sorted(set(counts)) and free in counts and counts[-1] <= seen[-1][1]
    with pytest.raises(Cancelled, match="Stopped after"):
        reduce_input(tiny_bert, trace, target, progress=lambda done, total: False)
