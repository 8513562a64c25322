"""Activation patching against the layers run by hand."""

import numpy as np
import pytest

from bert_tf.explain import NotComparable
from bert_tf.explain.errors import Cancelled
from bert_tf.explain.patching import patch_states
from bert_tf.explain.target import mask_target, next_sentence_target


@pytest.fixture(scope="module")
def pair(other_bert):
    return other_bert.trace("the cat [MASK] on the mat", "it ran"), other_bert.trace(
        "the dog [MASK] on a mat", "it ran"
    )


def _by_hand(bert, clean, corrupted, layer, position, target):
    layers, zero = bert.model.bert_layers, np.zeros((1, 1, 1, 1), np.float32)
    x = corrupted.hidden_states[layer].copy()
    x[position] = clean.hidden_states[layer, position]
    x = x[None]
    for index in range(layer, bert.config.num_hidden_layers):
        x = layers[f"layer_{index}"](x, zero)
    if target.position is None:
        logits = np.asarray(layers["nsp"](layers["pooler"](x)), np.float64)[0]
    else:
        logits = np.asarray(layers["mlm"](x, layers["embeddings"].token_table), np.float64)[
            0, target.position
        ]
    return logits[target.id] - np.log(np.exp(logits).sum())


@pytest.mark.parametrize("kind", ["mask", "next sentence"])
def test_each_patch_is_the_run_with_that_vector(other_bert, pair, kind):
    target = mask_target(other_bert, pair[0]) if kind == "mask" else next_sentence_target(other_bert, pair[0])
    found = patch_states(other_bert, *pair, target)
    length = pair[0].length
    assert found.scores.shape == (4, length)
    for layer, position in ((0, 2), (0, 5), (1, 0), (2, 3), (3, 3), (3, 0), (3, length - 1)):
        expected = _by_hand(other_bert, *pair, layer, position, target)
        assert found.scores[layer, position] == pytest.approx(expected, abs=2e-4)


def test_the_last_state_at_the_mask_is_the_whole_answer(other_bert, pair):
    found = patch_states(other_bert, *pair, mask_target(other_bert, pair[0]))
    mask = pair[0].masks[0]
    assert found.recovered[-1, mask] == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(np.delete(found.recovered[-1], mask), 0, atol=1e-3)
    same = [p for p in range(pair[0].length) if pair[0].token_ids[p] == pair[1].token_ids[p]]
    np.testing.assert_allclose(found.recovered[0, same], 0, atol=1e-3)
    assert found.clean != found.corrupted


def test_an_input_patched_into_itself_has_nothing_to_recover(other_bert, pair):
    found = patch_states(other_bert, pair[0], pair[0], mask_target(other_bert, pair[0]))
    np.testing.assert_allclose(found.scores, found.clean, atol=1e-4)
    assert np.isnan(found.recovered).all()


def test_long_inputs_go_in_blocks_and_can_be_cancelled(other_bert, pair, monkeypatch):
    target, seen = mask_target(other_bert, pair[0]), []
    whole = patch_states(other_bert, *pair, target)
    monkeypatch.setattr("bert_tf.explain.patching.TOKENS_AT_ONCE", 4 * pair[0].length)
    parts = patch_states(other_bert, *pair, target, progress=lambda *at: seen.append(at))
    np.testing.assert_allclose(whole.scores, parts.scores, atol=1e-4)
    assert seen[0] == (4, whole.scores.size) and seen[-1] == (whole.scores.size,) * 2
    with pytest.raises(Cancelled):
        patch_states(other_bert, *pair, target, progress=lambda done, total: False)


def test_inputs_of_different_length_are_refused(other_bert, pair):
    with pytest.raises(NotComparable, match="equally many tokens"):
        patch_states(other_bert, pair[0], other_bert.trace("a [MASK]"), mask_target(other_bert, pair[0]))
