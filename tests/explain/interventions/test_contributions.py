"""Contributions: the parts of a state against the state itself, and their shares against the score's own slope."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf, logsumexp

import bert_tf
from bert_tf.config import BertConfig
from bert_tf.errors import Cancelled, InputError, MaskPositionError
from bert_tf.explain import (
    class_target,
    contributions,
    mask_target,
    next_sentence_target,
    replaced_target,
    residual_decomposition,
    sentence_order_target,
)
from bert_tf.finetuning.task_settings import POOLINGS
from bert_tf.inference.bert import Bert
from bert_tf.models import build_pretraining_model
from bert_tf.runtime import Runtime
from bert_tf.tokenizers import Tokenizer
from tests.explain.test_class_target import WORDS, made
from tests.layers.test_causal import APART, LEFT, make_reader

GOLDEN_FOLDERS = Path(__file__).parents[2] / "golden" / "family"
TEXTS = {"albert": "the license of the work"}


def family(name):
    bert = make_reader(name) if name in (LEFT, APART) else bert_tf.load(GOLDEN_FOLDERS / name)
    text = TEXTS.get(name, "the cat ran" if name in (LEFT, APART) else "w1 w2 w3 w4")
    return bert, bert.trace(text, mask=[2] if "mlm" in bert.heads else (), hidden_states=True)


@pytest.fixture(scope="module")
def trace(other_bert):
    return other_bert.trace("the cat [MASK] on the mat", "it ran", hidden_states=True)


def shares_of(bert, trace, slope):
    """Each part's share of a score whose slope [T, H] at the last states is given, from the parts of every state."""
    heads = feed_forward = own = biases = 0
    for position in range(trace.length):
        parts = residual_decomposition(bert, trace, position)
        heads = heads + parts.heads @ slope[position]
        feed_forward = feed_forward + parts.feed_forward @ slope[position]
        own, biases = own + parts.input @ slope[position], biases + parts.biases @ slope[position]
    return own, heads, feed_forward, biases


def odds(scores, wanted):
    """Log-odds of one of K log-probabilities [B, K]."""
    share = np.exp(np.asarray(scores, np.float64)[:, wanted])
    return np.log(share) - np.log1p(-share)


def held_head(bert, states, position):
    """Log-probabilities [B, V] of the head for masked words by hand, with the deviation of its norm as at the first
    row of states [B, T, H]."""
    head = bert.model.bert_layers["mlm"]
    read = np.asarray(bert.hooked().read(states), np.float64)[:, position]
    inside = read @ np.asarray(head.transform.kernel, np.float64) + np.asarray(head.transform.bias)
    activation = {"gelu": lambda x: x / 2 * (1 + erf(x / np.sqrt(2)))}.get(
        head.settings["hidden_act"], lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    )
    inside = activation(inside)
    normal = (inside - inside.mean(axis=-1, keepdims=True)) / np.sqrt(inside[0].var() + head.norm.epsilon)
    normal = normal * np.asarray(head.norm.gamma) + np.asarray(head.norm.beta)
    logits = normal @ np.asarray(bert.model.bert_layers["embeddings"].token_table).T + np.asarray(head.bias)
    return logits - logsumexp(logits, axis=-1, keepdims=True)


def odds_of(bert, states, target):
    if target.head == "mlm":
        return odds(held_head(bert, states, target.position), target.id)
    scores = bert.hooked().answers(tf.constant(states), target)
    return scores[:, target.id] if target.is_regression else odds(scores, target.id)


def slope_by_differences(bert, states, target, among):
    """The slope of a target's log-odds at some numbers of the last states [1, T, H], by central differences."""
    results = []
    for position, unit in among:
        moved = np.repeat(states, 3, axis=0)
        moved[1:, position, unit] += (0.02, -0.02)
        _, high, low = odds_of(bert, moved, target)
        results.append((float(high) - float(low)) / 0.04)
    return results


def test_the_parts_of_a_state_add_up_to_it(other_bert, trace):
    for position in (0, trace.masks[0], trace.length - 1):
        parts = residual_decomposition(other_bert, trace, position)
        assert parts.heads.shape[:2] == (3, other_bert.config.num_attention_heads) and parts.position == position
        np.testing.assert_allclose(parts.total(), trace.hidden_states[-1, position], atol=1e-4)


@pytest.mark.parametrize("name", ["roberta", "distilbert", "albert", "electra-discriminator", LEFT, APART])
def test_every_member_s_states_add_up(name):
    bert, trace = family(name)
    for position in (0, 2):
        actual = residual_decomposition(bert, trace, position).total()
        np.testing.assert_allclose(actual, trace.hidden_states[-1, position], atol=1e-4)


def test_a_head_s_part_is_what_the_held_normalisations_leave_of_it(other_bert, trace):
    """Layer by layer by hand: the last layer's heads pass two norms, the first layer's feed-forward block five."""
    at = trace.masks[0]
    parts = residual_decomposition(other_bert, trace, at)

    def norm_at(layer, x):
        # The layer's own answer to an input, and the matrix that is left where its deviation is held.
        wide = np.asarray(x[0, at], np.float64)
        deviation = np.sqrt(wide.var() + layer.epsilon)
        centre = np.eye(len(wide)) - 1 / len(wide)
        return layer(x), centre * (np.asarray(layer.gamma, np.float64) / deviation)

    x, matrices, added = trace.hidden_states[0][None], [], {}
    for index in range(3):
        layer = other_bert.model.bert_layers[f"layer_{index}"]
        _, actual = layer(x, np.zeros((1, 1, 1, 1), np.float32), outputs=("pattern", "v", "attn_out"))
        attended = actual["attn_out"]
        kernel = np.asarray(layer.attention.output_dense.kernel)
        size = layer.attention.head_size
        for head in range(layer.attention.num_heads):
            mixed = np.asarray(actual["pattern"])[0, head, at] @ np.asarray(actual["v"])[0, head]
            added[index, head] = len(matrices), mixed @ kernel[head * size : (head + 1) * size]
        x, matrix = norm_at(layer.attention_norm, x + attended)
        matrices.append(matrix)
        widened = layer.feed_forward(x)
        added[index, "ff"] = len(matrices), np.asarray(widened)[0, at]
        x, matrix = norm_at(layer.feed_forward_norm, x + widened)
        matrices.append(matrix)
    for (index, part), (first, vector) in added.items():
        for matrix in matrices[first:]:
            vector = vector @ matrix
        wanted = parts.feed_forward[index] if part == "ff" else parts.heads[index, part]
        np.testing.assert_allclose(vector, wanted, atol=1e-4)


@pytest.mark.parametrize("kind", ["mask", "another word", "next", "not next"])
def test_shares_are_the_slope_times_the_parts(other_bert, trace, kind):
    target = {
        "mask": lambda: mask_target(other_bert, trace),
        "another word": lambda: mask_target(other_bert, trace, 2, "dog"),
        "next": lambda: next_sentence_target(other_bert, trace),
        "not next": lambda: next_sentence_target(other_bert, trace, False),
    }[kind]()
    check(other_bert, trace, target)


def check(bert, trace, target):
    actual = contributions(bert, trace, target)
    states = trace.hidden_states[-1][None]
    score, slope = (part[0] for part in bert.hooked().odds_gradient(tf.constant(states), target))
    assert score == pytest.approx(float(odds_of(bert, states, target)[0]), abs=1e-4)
    among = [(position, unit) for position in range(trace.length) for unit in (0, 5, states.shape[-1] - 1)]
    wanted = slope_by_differences(bert, states, target, among)
    np.testing.assert_allclose([slope[place] for place in among], wanted, atol=3e-3)
    own, heads, feed_forward, biases = shares_of(bert, trace, slope.astype(np.float64))
    assert actual.target == target and actual.score == pytest.approx(float(score), abs=1e-5)
    np.testing.assert_allclose(actual.heads, heads, atol=1e-4)
    np.testing.assert_allclose(actual.feed_forward, feed_forward, atol=1e-4)
    assert (actual.input, actual.biases) == pytest.approx((own, biases), abs=1e-4)
    assert actual.total == pytest.approx(float((slope * states[0]).sum()), abs=1e-4)
    assert actual.input + actual.heads.sum() + actual.feed_forward.sum() + actual.biases == pytest.approx(
        actual.total, abs=1e-4
    )
    assert np.abs(actual.heads).max() > 1e-4


@pytest.mark.parametrize("name", ["distilbert", LEFT, APART])
def test_a_hidden_word_of_every_reader(name):
    bert, trace = family(name)
    check(bert, trace, mask_target(bert, trace))


def test_what_other_heads_say(other_bert):
    bert, trace = family("electra-discriminator")
    check(bert, trace, replaced_target(bert, trace, 2))
    albert = family("albert")[0]
    pair = albert.trace("the license", "of the work", hidden_states=True)
    check(albert, pair, sentence_order_target(albert, pair))


@pytest.mark.parametrize(
    "settings",
    [
        {"pooling": "cls"},
        {"pooling": "mean"},
        {"pooling": "attention"},
        {"multi_label": True},
        {"labels": (), "regression": True},
    ],
)
def test_a_class_read_from_one_state_or_from_all(settings):
    bert = made(**settings)
    trace = bert.trace("it was a good film", hidden_states=True)
    check(bert, trace, class_target(bert, trace, None if "regression" in settings else "good"))


def test_the_slope_does_not_vanish_where_the_answer_is_certain(other_bert, trace):
    """Of a probability of 1 - 1e-9, as good as 1 in float32, the log-odds go on as the difference of logits."""
    head, target = other_bert.model.bert_layers["nsp"].dense, next_sentence_target(other_bert, trace)
    kept = [np.array(one) for one in head.get_weights()]
    before = contributions(other_bert, trace, target)
    try:
        head.set_weights([kept[0], kept[1] + np.array([20, 0], np.float32)])
        after = contributions(other_bert, trace, target)
    finally:
        head.set_weights(kept)
    assert after.score == pytest.approx(before.score + 20, abs=1e-4)
    np.testing.assert_allclose(after.heads, before.heads, atol=1e-5)


def test_one_of_several_labels_counts_by_its_logit_where_it_is_certain():
    """Of a sigmoid of 1 - 1.5e-8, which float32 rounds to 1, the log-odds go on as the logit."""
    bert = made(multi_label=True)
    trace = bert.trace("it was a good film", hidden_states=True)
    target, bias = class_target(bert, trace, "good"), bert.task.network.head.trainable_variables[-1]
    before = contributions(bert, trace, target)
    bias.assign(np.asarray(bias) + np.array([0, 18 - before.score, 0], np.float32))
    after = contributions(bert, trace, target)
    assert after.score == pytest.approx(18, abs=1e-4) and np.abs(before.heads).max() > 1e-3
    np.testing.assert_allclose(after.heads, before.heads, atol=1e-6)
    np.testing.assert_allclose(after.feed_forward, before.feed_forward, atol=1e-6)
    bias.assign(np.asarray(bias) - np.array([0, 48, 0], np.float32))
    assert contributions(bert, trace, target).score == pytest.approx(-30, abs=1e-4)


def test_a_class_without_others_is_refused_and_one_label_alone_is_not():
    bert = made(labels=("good",))
    trace = bert.trace("it was a good film", hidden_states=True)
    with pytest.raises(InputError, match="good is the only class, and always certain"):
        contributions(bert, trace, class_target(bert, trace, "good"))
    bert = made(labels=("good",), multi_label=True)
    check(bert, trace, class_target(bert, trace, "good"))


def test_the_layers_matrices_are_not_all_held_at_once():
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=128, num_hidden_layers=12, num_attention_heads=2, intermediate_size=16
    )
    model = build_pretraining_model(config)
    bert = Bert(config, Tokenizer(WORDS, lower_case=True), model, Runtime(model), "made")
    trace = bert.trace("it was a [MASK] film")
    target, matrix = mask_target(bert, trace), 128 * 128 * 8  # bytes
    for work in (lambda: contributions(bert, trace, target), lambda: residual_decomposition(bert, trace, 4)):
        work()  # what is compiled at first
        tracemalloc.start()
        try:
            work()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < 6 * matrix, f"{most / matrix:.1f} matrices"


def test_it_says_how_far_it_is_and_stops(other_bert, trace):
    messages, target = [], mask_target(other_bert, trace)
    contributions(other_bert, trace, target, progress=lambda *steps: messages.append(steps))
    assert messages == [(0, 3), (1, 3), (2, 3)]
    with pytest.raises(Cancelled):
        contributions(other_bert, trace, target, progress=lambda done, total: done < 1)


def test_a_position_that_is_not_there_is_refused(other_bert, trace):
    with pytest.raises(MaskPositionError, match="no token 99"):
        residual_decomposition(other_bert, trace, 99)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_of_every_pooling_the_shares_add_up_to_the_whole_product(pooling):
    bert = made(pooling=pooling)
    trace = bert.trace(" ".join(WORDS[5:12]))
    target = class_target(bert, trace)
    states = bert.hooked().states(trace.token_ids[None], trace.segments[None])
    score, slope = bert.hooked().odds_gradient(states[-1], target)
    actual = contributions(bert, trace, target)
    assert actual.score == pytest.approx(float(score[0]), abs=1e-5)
    assert actual.total == pytest.approx(float((slope * states[-1].numpy()).sum()), abs=1e-5)
    parts = actual.input + actual.biases + actual.heads.sum() + actual.feed_forward.sum()
    assert parts == pytest.approx(actual.total, abs=1e-5)
