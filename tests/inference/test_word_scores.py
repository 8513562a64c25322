"""Words of several pieces at masked words, by the pseudo-log-likelihood of their pieces."""

import json

import numpy as np
import pytest

from bert_tf.errors import InputError, NothingToPredict
from bert_tf.inference.word_scores import score_words


def by_hand(bert, words, pieces, start, count):
    """The logarithms of the pieces' probabilities in a text of single words, each piece masked alone."""
    results = []
    for place in range(count):
        hidden = list(pieces)
        hidden[place] = "[MASK]"
        tokens = ["[CLS]", *words[:start], *hidden, *words[start + 1 :], "[SEP]"]
        ids = np.array([bert.tokenizer.token_to_id(token) for token in tokens], np.int32)
        logits = bert.mlm_logits(ids, np.zeros_like(ids), [1 + start + place])[0].astype(np.float64)
        shares = np.exp(logits - logits.max())
        results.append(np.log(shares[bert.tokenizer.token_to_id(pieces[place])] / shares.sum()))
    return results


def test_each_piece_is_masked_alone_in_the_place_of_the_mask(tiny_bert):
    trace = tiny_bert.trace("the [MASK] sat on the mat")
    pieces = tiny_bert.tokenizer.tokenize("cats").tokens
    (score,) = score_words(tiny_bert, trace, ["cats"])
    assert score.positions == (2,) and score.pieces == pieces == ("cat", "##s")
    wanted = by_hand(tiny_bert, ["the", "?", "sat", "on", "the", "mat"], pieces, 1, 2)
    np.testing.assert_allclose(score.log_probabilities, wanted, atol=1e-4)
    assert score.pseudo_log_likelihood == pytest.approx(sum(wanted), abs=1e-4)


def test_a_masked_word_of_several_pieces_is_replaced_whole(tiny_bert):
    masked = tiny_bert.trace("the cats sat on the mat", mask=["cats"])
    typed = tiny_bert.trace("the [MASK] sat on the mat")
    assert masked.masks == (2, 3)
    (one,), (other,) = (score_words(tiny_bert, trace, "cats") for trace in (masked, typed))
    assert one.positions == (2, 3) and one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-5)


def test_an_answer_has_words_of_one_token_and_of_several(tiny_bert):
    answer = tiny_bert.predict("the [MASK] sat [MASK] the mat", targets=["cat", "cats"])
    assert [one.token for one in answer.masks[0].targets] == ["cat"]
    assert [(one.word, one.positions) for one in answer.word_scores] == [("cats", (2,)), ("cats", (4,))]
    record = json.loads(json.dumps(answer.to_dict()))["word_scores"][0]
    assert record["pseudo_log_likelihood"] == pytest.approx(sum(record["log_probabilities"]))
    assert "word_scores" not in tiny_bert.predict("the [MASK] sat", targets=["cat"]).to_dict()


def test_words_from_a_generator_are_scored_at_every_mask(tiny_bert):
    trace = tiny_bert.trace("the [MASK] sat [MASK] the mat")
    scores = score_words(tiny_bert, trace, (word for word in ("cats", "cat")))
    assert [(one.word, one.positions) for one in scores] == [
        ("cats", (2,)),
        ("cat", (2,)),
        ("cats", (4,)),
        ("cat", (4,)),
    ]


@pytest.mark.parametrize("word", ["", " ", "\u200b", "\U0001f996", "cats \U0001f996", 3])
def test_a_word_without_pieces_of_the_vocabulary_has_no_score(tiny_bert, word):
    with pytest.raises(InputError, match="not made of pieces of this model's vocabulary"):
        score_words(tiny_bert, tiny_bert.trace("the [MASK] sat"), ["cats", word])


def test_what_cannot_be_scored_is_refused(tiny_bert):
    with pytest.raises(NothingToPredict, match="Nothing is masked"):
        score_words(tiny_bert, tiny_bert.trace("the cat sat"), "cats")
    full = " ".join(["the"] * (tiny_bert.max_length - 3) + ["[MASK]"])
    with pytest.raises(InputError, match="Shorten the text"):
        score_words(tiny_bert, tiny_bert.trace(full), "cats")
