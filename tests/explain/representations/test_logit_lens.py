"""The logit lens against the MLM head's formula in NumPy."""

import math

import numpy as np
import pytest

from bert_tf.errors import InputError, MaskPositionError, NothingToPredict
from bert_tf.explain.representations.logit_lens import logit_lens
from bert_tf.models import named_variables


def _distribution(bert, state):
    """The MLM head's probabilities for one hidden vector, written out in float64."""
    weights = {name: np.asarray(value, np.float64) for name, value in named_variables(bert.model).items()}
    name = "cls.predictions.transform"
    x = state.astype(np.float64) @ weights[f"{name}.dense.weight"] + weights[f"{name}.dense.bias"]
    x = np.array([value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in x])
    x = (x - x.mean()) / np.sqrt(x.var() + bert.config.layer_norm_eps)
    x = x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]
    logits = weights["bert.embeddings.word_embeddings.weight"] @ x + weights["cls.predictions.bias"]
    return np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()


@pytest.fixture(scope="module")
def trace(other_bert):
    return other_bert.trace("the [MASK] sat on the mat", "it [MASK]")


def test_each_layer_says_what_the_head_says_of_its_state(other_bert, trace):
    positions = (*trace.masks, 3)
    lens = logit_lens(other_bert, trace, positions, top_k=4)
    assert lens.ids.shape == (3, 4, 4) and lens.positions == positions
    for row, position in enumerate(positions):
        for layer in range(4):
            exact = _distribution(other_bert, trace.hidden_states[layer, position])
            order = np.argsort(-exact)
            assert lens.ids[row, layer].tolist() == order[:4].tolist()
            assert lens.predicted_tokens[row][layer][0] == other_bert.tokenizer.vocab[order[0]]
            np.testing.assert_allclose(lens.probabilities[row, layer], exact[order[:4]], rtol=1e-3)
            assert lens.entropies[row, layer] == pytest.approx(-(exact * np.log2(exact)).sum(), abs=1e-3)
            answer = lens.answers[row].id
            assert lens.answer_ranks[row, layer] == 1 + np.flatnonzero(order == answer)[0]
            assert lens.answer_probabilities[row, layer] == pytest.approx(exact[answer], rel=1e-3)


def test_the_last_layer_is_the_models_own_answer(other_bert, trace):
    lens = logit_lens(other_bert, trace)
    best = [mask.predictions[0] for mask in other_bert.fill_mask(trace)]
    assert [answer.token for answer in lens.answers] == [one.token for one in best]
    assert [a.probability for a in lens.answers] == pytest.approx([one.probability for one in best], rel=1e-4)
    assert (lens.answer_ranks[:, -1] == 1).all() and (lens.stable_from >= lens.first_top).all()


def test_where_the_answer_first_appears_and_where_it_settles(other_bert, trace):
    lens = logit_lens(other_bert, trace, range(trace.length))
    for row, ranks in enumerate(lens.answer_ranks == 1):
        assert lens.first_top[row] == ranks.tolist().index(True)
        assert (
            ranks[lens.stable_from[row] :].all() and not ranks[lens.stable_from[row] - 1 : lens.stable_from[row]].any()
        )


def test_an_answer_of_ones_own_is_followed(other_bert, trace):
    lens = logit_lens(other_bert, trace, answers=(7, 9))
    assert [answer.id for answer in lens.answers] == [7, 9]
    exact = _distribution(other_bert, trace.hidden_states[0, trace.masks[1]])
    assert lens.answer_probabilities[1, 0] == pytest.approx(exact[9], rel=1e-3)
    never = (lens.answer_ranks > 1).all(axis=1)
    assert (lens.first_top[never] == -1).all() and (lens.stable_from[never] == -1).all()


def test_many_positions_are_read_in_blocks(other_bert, trace, monkeypatch):
    whole = logit_lens(other_bert, trace, range(trace.length))
    monkeypatch.setattr("bert_tf.explain.representations.logit_lens._ROWS", 5)
    parts = logit_lens(other_bert, trace, range(trace.length))
    np.testing.assert_allclose(whole.probabilities, parts.probabilities, rtol=1e-4)


def test_questions_that_cannot_be_answered_are_refused(other_bert, headless_bert, trace):
    with pytest.raises(NothingToPredict):
        logit_lens(other_bert, other_bert.trace("the cat"))
    with pytest.raises(MaskPositionError, match="no token 40"):
        logit_lens(other_bert, trace, (40,))
    with pytest.raises(InputError, match="numbers of tokens, from 0 on, not 'x'"):
        logit_lens(other_bert, trace, ["x"])
    with pytest.raises(InputError, match="hidden_states=True"):
        logit_lens(other_bert, other_bert.trace("a [MASK]", hidden_states=False))
    with pytest.raises(InputError, match="2 token ids"):
        logit_lens(other_bert, trace, answers=(1,))
    with pytest.raises(InputError, match="2 token ids"):
        logit_lens(other_bert, trace, answers=("cat", "dog"))
    with pytest.raises(InputError, match="numbers of tokens, from 0 on, not True"):
        logit_lens(other_bert, trace, (True,))
    with pytest.raises(ValueError, match="masked language model"):
        logit_lens(headless_bert, headless_bert.trace("a cat"), (1,))


def test_one_position_is_what_it_is_alone(other_bert, trace):
    row, alone = logit_lens(other_bert, trace, (1, 3, 6)).at(1), logit_lens(other_bert, trace, (3,))
    assert row.positions == (3,) and row.predicted_tokens == alone.predicted_tokens
    assert logit_lens(other_bert, trace, (1, 3)).at(-1).positions == (3,)
    with pytest.raises(IndexError):
        row.at(1)
    assert row.answers[0].id == alone.answers[0].id
    for name in ("ids", "answer_ranks", "first_top", "stable_from"):
        np.testing.assert_array_equal(getattr(row, name), getattr(alone, name))
    for name in ("probabilities", "entropies", "answer_probabilities"):
        np.testing.assert_allclose(getattr(row, name), getattr(alone, name), rtol=1e-5)


def test_entropies_are_those_of_the_whole_distribution(other_bert, trace):
    lens = logit_lens(other_bert, trace, (3,))
    for layer in range(4):
        exact = _distribution(other_bert, trace.hidden_states[layer, 3])
        assert lens.entropies[0, layer] == pytest.approx(-(exact * np.log2(exact)).sum(), rel=1e-5)
