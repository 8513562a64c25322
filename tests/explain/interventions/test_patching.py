"""Activation patching against the layers run by hand."""

import numpy as np
import pytest

from bert_tf.errors import Cancelled, InputError, MaskPositionError, NotComparable
from bert_tf.explain.attention.value_attention import output_kernels
from bert_tf.explain.attribution.target import mask_target, next_sentence_target
from bert_tf.explain.interventions.patching import patch, patch_blocks, patch_heads, patch_states
from bert_tf.explain.models.architecture import layer_activations_from_state
from tests.layers.test_causal import APART, LEFT, make_reader


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
    return _score(bert, x, target)


def _score(bert, x, target):
    """The target's log-probability from a last hidden state [1, T, H]."""
    layers = bert.model.bert_layers
    if target.position is None:
        logits = np.asarray(layers["nsp"](layers["pooler"](x)), np.float64)[0]
    else:
        logits = np.asarray(layers["mlm"](x, layers["embeddings"].token_table), np.float64)[0, target.position]
    return logits[target.id] - np.log(np.exp(logits).sum())


@pytest.mark.parametrize("kind", ["mask", "next sentence"])
def test_each_patch_is_the_run_with_that_vector(other_bert, pair, kind):
    target = mask_target(other_bert, pair[0]) if kind == "mask" else next_sentence_target(other_bert, pair[0])
    actual = patch_states(other_bert, *pair, target)
    length = pair[0].length
    assert actual.scores.shape == (4, length)
    for layer, position in ((0, 2), (0, 5), (1, 0), (2, 3), (3, 3), (3, 0), (3, length - 1)):
        expected = _by_hand(other_bert, *pair, layer, position, target)
        assert actual.scores[layer, position] == pytest.approx(expected, abs=2e-4)


def test_the_last_state_at_the_mask_is_the_whole_answer(other_bert, pair):
    actual = patch_states(other_bert, *pair, mask_target(other_bert, pair[0]))
    mask = pair[0].masks[0]
    assert actual.recovered[-1, mask] == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(np.delete(actual.recovered[-1], mask), 0, atol=1e-3)
    same = [p for p in range(pair[0].length) if pair[0].token_ids[p] == pair[1].token_ids[p]]
    np.testing.assert_allclose(actual.recovered[0, same], 0, atol=1e-3)
    assert actual.clean != actual.corrupted


def _blocks(layer, x):
    """What a layer's attention adds to a state [1, T, H], what goes into the other block, and what that adds."""
    attended = np.array(layer.attention(x, np.zeros((1, 1, 1, 1), np.float32)))
    middle = np.asarray(layer.attention_norm(x + attended))
    return attended, middle, np.array(layer.feed_forward(middle))


@pytest.mark.parametrize("kind", ["mask", "next sentence"])
@pytest.mark.parametrize("block", ["attention", "feed_forward"])
def test_each_block_s_output_is_put_before_residual_and_norm(other_bert, pair, block, kind):
    target = mask_target(other_bert, pair[0]) if kind == "mask" else next_sentence_target(other_bert, pair[0])
    actual = patch_blocks(other_bert, *pair, target, block)
    assert actual.component == block and actual.scores.shape == (3, pair[0].length)
    layers = [other_bert.model.bert_layers[f"layer_{index}"] for index in range(3)]
    for at, position in ((0, 2), (0, 0), (1, 5), (2, 3), (2, pair[0].length - 1)):
        x = pair[1].hidden_states[at][None]
        attended, middle, widened = _blocks(layers[at], x)
        clean = _blocks(layers[at], pair[0].hidden_states[at][None])
        if block == "attention":
            attended[0, position] = clean[0][0, position]
            middle = np.asarray(layers[at].attention_norm(x + attended))
            widened = np.asarray(layers[at].feed_forward(middle))
        else:
            widened[0, position] = clean[2][0, position]
        x = np.asarray(layers[at].feed_forward_norm(middle + widened))
        for layer in layers[at + 1 :]:
            _, middle, widened = _blocks(layer, x)
            x = np.asarray(layer.feed_forward_norm(middle + widened))
        assert actual.scores[at, position] == pytest.approx(_score(other_bert, x, target), abs=2e-4)
    whole = patch_states(other_bert, *pair, target)
    assert (actual.clean, actual.corrupted) == (whole.clean, whole.corrupted)


def test_all_that_all_blocks_add_is_the_whole_run_where_the_embeddings_are_equal(other_bert, pair):
    hooked, length = other_bert.hooked(), pair[0].length
    good, bad = (hooked.states(trace.token_ids[None], trace.segments[None]) for trace in pair)
    everywhere, x = np.ones((1, length, 1), bool), bad[0]
    for index in range(3):
        attended, _, widened = _blocks(other_bert.model.bert_layers[f"layer_{index}"], good[index])
        both = {"attn_out": (everywhere, attended), "mlp_out": (everywhere, widened)}
        x = hooked.layer(index, x, replace=both)
    same = pair[0].token_ids == pair[1].token_ids
    assert 0 < same.sum() < length and same[0] and same[pair[0].masks[0]]
    np.testing.assert_allclose(x[0][same], good[-1][0][same], atol=2e-5)
    assert np.abs(x[0][~same] - good[-1][0][~same]).max() > 0.01
    for target in (mask_target(other_bert, pair[0]), next_sentence_target(other_bert, pair[0])):
        assert hooked.score(x, target)[0] == pytest.approx(float(hooked.score(good[-1], target)[0]), abs=1e-4)


def test_blocks_that_are_put_nowhere_change_nothing(other_bert, pair):
    hooked = other_bert.hooked()
    states = hooked.states(pair[0].token_ids[None], pair[0].segments[None])
    nowhere = np.zeros((1, pair[0].length, 1), bool)
    for replace in ({}, {"attn_out": (nowhere, states[0].numpy())}):
        np.testing.assert_allclose(hooked.layer(1, states[1], replace=replace), states[2], atol=1e-5)


def test_another_block_is_refused(other_bert, pair):
    with pytest.raises(InputError, match="no block 'heads'"):
        patch_blocks(other_bert, *pair, mask_target(other_bert, pair[0]), "heads")
    with pytest.raises(InputError, match="--at goes with --component head"):
        patch(other_bert, pair[0], mask_target(other_bert, pair[0]), pair[1], at=1)


def test_an_input_patched_into_itself_has_nothing_to_recover(other_bert, pair):
    actual = patch_states(other_bert, pair[0], pair[0], mask_target(other_bert, pair[0]))
    np.testing.assert_allclose(actual.scores, actual.clean, atol=1e-4)
    assert np.isnan(actual.recovered).all()


def test_long_inputs_go_in_blocks_and_can_be_cancelled(other_bert, pair, monkeypatch):
    target, seen = mask_target(other_bert, pair[0]), []
    whole = patch_states(other_bert, *pair, target)
    monkeypatch.setattr("bert_tf.explain.interventions.patching.TOKENS_PER_BATCH", 4 * pair[0].length)
    parts = patch_states(other_bert, *pair, target, progress=lambda *at: seen.append(at))
    np.testing.assert_allclose(whole.scores, parts.scores, atol=1e-4)
    # Also between the layers of a block, so that a server can use the model for others.
    counts = [done for done, _ in seen]
    assert counts == sorted(counts) and len(set(counts)) < len(counts) and sorted(set(counts))[:2] == [0, 4]
    assert seen[-1] == (whole.scores.size,) * 2
    with pytest.raises(Cancelled):
        patch_states(other_bert, *pair, target, progress=lambda done, total: False)


def test_inputs_of_different_length_are_refused(other_bert, pair):
    with pytest.raises(NotComparable, match="equally many tokens"):
        patch_states(other_bert, pair[0], other_bert.trace("a [MASK]"), mask_target(other_bert, pair[0]))


def test_a_corrupted_text_is_read_without_maps_and_states(other_bert, pair, monkeypatch):
    clean, corrupted = pair
    asked, run = [], other_bert.runtime.run
    monkeypatch.setattr(other_bert.runtime, "run", lambda batch, outputs: asked.append(outputs) or run(batch, outputs))
    target = mask_target(other_bert, clean)
    actual = patch(other_bert, clean, target, corrupted.text_a)
    assert asked and not {"attentions", "hidden_states"} & set(asked[0])
    np.testing.assert_allclose(actual.scores, patch_states(other_bert, clean, corrupted, target).scores, atol=1e-6)


def _with_a_head(bert, clean, corrupted, at, head, position, target):
    """The target's score where one head's weighed values come from the clean run, at one position or at all."""
    zero, mixed = np.zeros((1, 1, 1, 1), np.float32), []
    layers = [bert.model.bert_layers[f"layer_{index}"] for index in range(bert.config.num_hidden_layers)]
    for trace in (clean, corrupted):
        _, actual = layers[at](trace.hidden_states[at][None], zero, outputs=("pattern", "v"))
        mixed.append(np.einsum("nqk,nkd->nqd", *(np.asarray(actual[name])[0] for name in ("pattern", "v"))))
    places = slice(None) if position is None else position
    mixed[1][head, places] = mixed[0][head, places]
    together = mixed[1].transpose(1, 0, 2).reshape(1, clean.length, -1)
    x = corrupted.hidden_states[at][None]
    middle = np.asarray(layers[at].attention_norm(x + np.asarray(layers[at].attention.output_dense(together))))
    x = np.asarray(layers[at].feed_forward_norm(middle + np.asarray(layers[at].feed_forward(middle))))
    for layer in layers[at + 1 :]:
        x = np.asarray(layer(x, zero))
    return _score(bert, x, target)


@pytest.mark.parametrize("kind, position", [("mask", None), ("mask", 3), ("next sentence", None), ("next sentence", 0)])
def test_each_head_is_put_over_alone(other_bert, pair, kind, position, monkeypatch):
    target = mask_target(other_bert, pair[0]) if kind == "mask" else next_sentence_target(other_bert, pair[0])
    monkeypatch.setattr("bert_tf.explain.interventions.patching.TOKENS_PER_BATCH", 3 * pair[0].length)
    seen = []
    actual = patch_heads(other_bert, *pair, target, position, progress=lambda *at: seen.append(at))
    heads = other_bert.config.num_attention_heads
    assert (actual.component, actual.position, actual.scores.shape) == ("head", position, (3, heads))
    wanted = [[_with_a_head(other_bert, *pair, at, head, position, target) for head in range(heads)] for at in range(3)]
    np.testing.assert_allclose(actual.scores, wanted, atol=2e-4)
    whole = patch_states(other_bert, *pair, target)
    assert (actual.clean, actual.corrupted) == (whole.clean, whole.corrupted)
    assert np.ptp(actual.scores) > 1e-3 and seen[-1] == (3 * heads, 3 * heads)
    assert len({done for done, _ in seen} - {0}) == 3 * -(-heads // 3)


def test_all_heads_of_a_layer_at_once_are_its_attention(other_bert, pair):
    """Where the inputs differ in one head's output alone, that head brings back what the whole block does."""
    target = mask_target(other_bert, pair[0])
    layer = other_bert.model.bert_layers["layer_0"].attention
    kept = [np.array(one) for one in layer.output_dense.get_weights()]
    only = kept[0].copy()
    only[layer.head_size :] = 0  # no head but the first writes anything
    layer.output_dense.set_weights([only, kept[1]])
    try:
        heads = patch_heads(other_bert, *pair, target, pair[0].masks[0])
        whole = patch_blocks(other_bert, *pair, target, "attention")
    finally:
        layer.output_dense.set_weights(kept)
    assert heads.scores[0, 0] == pytest.approx(whole.scores[0, pair[0].masks[0]], abs=1e-4)
    np.testing.assert_allclose(heads.scores[0, 1:], heads.corrupted, atol=1e-4)


@pytest.mark.parametrize("name", [LEFT, APART])
def test_heads_of_one_way_readers_are_put_over_too(name):
    bert = make_reader(name)
    clean, corrupted = (bert.trace(text) for text in ("the cat ran on", "the dog ran on"))
    target = mask_target(bert, clean, 3, "ran")
    actual = patch_heads(bert, clean, corrupted, target)
    hooked = bert.hooked()
    states = hooked.states(corrupted.token_ids[None], corrupted.segments[None])
    good = hooked.states(clean.token_ids[None], clean.segments[None])
    # All heads of a layer put over, one head's difference after another, are the block's output.
    ours, theirs = (layer_activations_from_state(bert, one[1].numpy()[0], 1) for one in (good, states))
    moved = [
        (ours["attentions"][h] @ ours["values"][h] - theirs["attentions"][h] @ theirs["values"][h])
        @ output_kernels(bert)[1, h]
        for h in range(4)
    ]
    np.testing.assert_allclose(sum(moved) + theirs["attention"], ours["attention"], atol=1e-5)
    for head in range(4):
        places = np.full((1, clean.length, 1), True)
        after = hooked.layer(1, states[1], replace={"attn_out": (places, (theirs["attention"] + moved[head])[None])})
        assert actual.scores[1, head] == pytest.approx(float(hooked.score(after, target)[0]), abs=1e-5)


def test_a_head_s_place_that_is_not_there_is_refused(other_bert, pair):
    with pytest.raises(MaskPositionError, match="no token 99"):
        patch_heads(other_bert, *pair, mask_target(other_bert, pair[0]), 99)
