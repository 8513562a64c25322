"""Pseudo-log-likelihood against masking by hand, one trace a token."""

from importlib import import_module

import numpy as np
import pytest

from bert_tf.errors import Cancelled, EmptyText, InputError, NothingToPredict
from bert_tf.explain.datasets.pseudo_likelihood import minimal_pairs, pseudo_likelihood
from bert_tf.inference.predictions import fill_mask


def _by_hand(bert, text_a, text_b, masked, position):
    trace = bert.trace(text_a, text_b, mask=masked)
    actual = {mask.position: mask for mask in fill_mask(trace, bert.tokenizer)}[position]
    return np.log(actual.original_probability)


@pytest.mark.parametrize("within_word", [True, False])
def test_each_token_is_predicted_from_the_others(tiny_bert, within_word):
    texts = "the cats sat", "it played"
    actual = pseudo_likelihood(tiny_bert, *texts, within_word=within_word)
    assert actual.tokens == ("[CLS]", "the", "cat", "##s", "sat", "[SEP]", "it", "played", "[SEP]")
    assert np.flatnonzero(np.isnan(actual.log_probabilities)).tolist() == [0, 5, 8]
    for position in (1, 2, 3, 4, 6, 7):
        masked = [2, 3] if position == 2 and within_word else [position]
        expected = _by_hand(tiny_bert, *texts, masked, position)
        assert actual.log_probabilities[position] == pytest.approx(expected, abs=1e-4)
    assert actual.total == pytest.approx(np.nansum(actual.log_probabilities))
    assert actual.perplexity == pytest.approx(np.exp(-actual.total / 6))


def test_in_blocks_it_is_the_same(tiny_bert, monkeypatch):
    whole, seen = pseudo_likelihood(tiny_bert, "the cat sat on the mat"), []
    # The package's attribute of that name is the function.
    monkeypatch.setattr(import_module("bert_tf.explain.datasets.pseudo_likelihood"), "TOKENS_PER_BATCH", 16)
    parts = pseudo_likelihood(tiny_bert, "the cat sat on the mat", progress=lambda *at: seen.append(at))
    np.testing.assert_allclose(whole.log_probabilities, parts.log_probabilities, atol=1e-4)
    assert seen == [(2, 6), (4, 6), (6, 6)]


def test_a_typed_mask_is_not_scored(tiny_bert):
    actual = pseudo_likelihood(tiny_bert, "the [MASK] sat")
    assert np.isnan(actual.log_probabilities).tolist() == [True, False, True, False, True]


def test_minimal_pairs_are_judged_by_their_totals(tiny_bert):
    pairs = [("the cat sat", "the cat sits"), ("it ran", "they ran")]
    for pair, texts in zip(minimal_pairs(tiny_bert, pairs), pairs):
        totals = [pseudo_likelihood(tiny_bert, text).total for text in texts]
        assert pair.margin == pytest.approx(totals[0] - totals[1]) and pair.preferred == (totals[0] > totals[1])


def test_what_cannot_be_scored_is_refused(tiny_bert, headless_bert):
    with pytest.raises(NothingToPredict):
        pseudo_likelihood(tiny_bert, "[MASK]")
    with pytest.raises(EmptyText):
        pseudo_likelihood(tiny_bert, " ")
    with pytest.raises(ValueError, match="masked language model"):
        pseudo_likelihood(headless_bert, "the cat")
    with pytest.raises(InputError, match="two texts"):
        minimal_pairs(tiny_bert, ["ab"])
    with pytest.raises(Cancelled):
        minimal_pairs(tiny_bert, [("a cat", "a dog")] * 2, progress=lambda done, total: False)
