"""Path patching against its definition, written out in NumPy from the model's weights."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import Cancelled, InputError, MaskPositionError, NotComparable
from bert_tf.explain.attribution.target import mask_target, next_sentence_target
from bert_tf.explain.interventions.patching import patch_blocks, patch_states
from bert_tf.explain.interventions.path_patching import RECEIVERS, Receiver, patch_paths
from bert_tf.layers.causal import CausalEncoderLayer, ReverseCausalEncoderLayer
from tests.conftest import make_bert
from tests.layers.test_causal import APART, LEFT, make_reader

TEXTS = ("the cat [MASK] on the mat", "the dog [MASK] on a mat")


@pytest.fixture(scope="module")
def pair(other_bert):
    return tuple(other_bert.trace(text, "it ran") for text in TEXTS)


class Written:
    """One encoder layer in NumPy: what each head's part makes of what it reads, and what adds up."""

    def __init__(self, layer):
        self.stacks = layer.stacks()
        names = ("query", "key", "value", "output_dense")
        parts = [[getattr(stack.attention, name) for name in names] for stack in self.stacks]
        # For each stack: the kernel and the bias of each of its dense layers.
        self.weights = [
            [(np.asarray(dense.kernel), np.asarray(dense.bias)) for dense in dense_layers] for dense_layers in parts
        ]

    def _each(self, x):
        return np.split(x, len(self.stacks), axis=-1)

    def attention(self, x, reads=None):
        """[N, T, H], what each head adds to [T, H]; reads: (part, head, [T, H]) for another state read by it."""
        added, count, width = [], 0, x.shape[-1]
        for side, (stack, own) in enumerate(zip(self.stacks, self._each(x))):
            size = stack.attention.head_size
            *dense_layers, (output_kernel, _) = self.weights[side]
            for head in range(stack.attention.num_heads):
                made = {}
                for name, (kernel, bias) in zip(("queries", "keys", "values"), dense_layers):
                    read = self._each(reads[2])[side] if reads and reads[:2] == (name, count) else own
                    columns = slice(head * size, (head + 1) * size)
                    made[name] = read @ kernel[:, columns] + bias[columns]
                scores = made["queries"] @ made["keys"].T / np.sqrt(size)
                before = np.tril(np.ones_like(scores))
                masks = {CausalEncoderLayer: before, ReverseCausalEncoderLayer: before.T}
                seen = masks.get(type(stack), np.ones_like(scores))
                weights = np.exp(np.where(seen, scores, -np.inf))
                mixed = weights / weights.sum(axis=1, keepdims=True) @ made["values"]
                share = np.zeros((len(x), width))
                rows = output_kernel[head * size : (head + 1) * size]
                share[:, side * own.shape[-1] : (side + 1) * own.shape[-1]] = mixed @ rows
                added.append(share)
                count += 1
        return np.array(added)

    def bias(self):
        return np.concatenate([dense_layers[-1][1] for dense_layers in self.weights])

    def feed_forward(self, x):
        each = zip(self.stacks, self._each(x.astype(np.float32)[None]))
        return np.concatenate([np.asarray(stack.feed_forward(own))[0] for stack, own in each], axis=-1)

    def norm(self, name, x):
        results = []
        for stack, own in zip(self.stacks, self._each(x)):
            norm = getattr(stack, name)
            centred = own - own.mean(axis=-1, keepdims=True)
            scaled = centred / np.sqrt(own.var(axis=-1, keepdims=True) + norm.epsilon)
            results.append(scaled * np.asarray(norm.gamma) + np.asarray(norm.beta))
        return np.concatenate(results, axis=-1)


def _run(layers, x, outputs=None, reads=None):
    """The states that go in and come out, [L + 1], what goes into each feed-forward block, and what each part adds.

    Args:
        outputs: dict from (layer, head) or (layer, None) to [T, H] in the place of what is worked out.
        reads: (layer, part, head, [T, H]).
    """
    states, middles, added = [x], [], {}
    for index, layer in enumerate(layers):
        own = reads[1:] if reads and reads[0] == index else None
        for head, one in enumerate(layer.attention(x, own)):
            added[index, head] = one
        heads = len([one for one in added if one[0] == index])
        added |= {one: value for one, value in (outputs or {}).items() if one[0] == index and one[1] is not None}
        middle = layer.norm("attention_norm", x + sum(added[index, head] for head in range(heads)) + layer.bias())
        added[index, None] = layer.feed_forward(own[2] if own and own[0] == "feed_forward" else middle)
        added |= {one: value for one, value in (outputs or {}).items() if one == (index, None)}
        x = layer.norm("feed_forward_norm", middle + added[index, None])
        states.append(x)
        middles.append(middle)
    return states, middles, added


def _unpatched(bert, pair):
    """The layers of a model, and what `_run` returns for the clean and for the corrupted text."""
    layers = [Written(bert.model.bert_layers[f"layer_{index}"]) for index in range(bert.config.num_hidden_layers)]
    begins = [bert.hooked().embed(one.token_ids[None], one.segments[None]).numpy()[0] for one in pair]
    return layers, *(_run(layers, x.astype(np.float64)) for x in begins)


def _by_hand(bert, layers, good, bad, target, receiver, sender, position=None):
    """The target's score with the path from a sender, (layer, head), (layer, None) or "embeddings", patched."""
    where = slice(None) if position is None else position
    outputs, x = {one: value.copy() for one, value in bad[2].items()}, bad[0][0].copy()
    if sender == "embeddings":
        x[where] = good[0][0][where]
    else:
        outputs[sender][where] = good[2][sender][where]
    held = _run(layers, x, outputs)
    if receiver is None:
        last = held[0][-1]
    else:
        entering = (held[1] if receiver.part == "feed_forward" else held[0])[receiver.layer]
        last = _run(layers, bad[0][0], None, (receiver.layer, receiver.part, receiver.head, entering))[0][-1]
    return float(bert.hooked().score(last[None].astype(np.float32), target)[0])


def _receivers(layer, head):
    return [Receiver(part, layer, None if part == "feed_forward" else head) for part in RECEIVERS]


def _checked(bert, pair, target, receiver, senders, position=None):
    actual = patch_paths(bert, *pair, target, receiver, position)
    heads, unpatched = bert.config.num_attention_heads, _unpatched(bert, pair)
    for sender in senders:
        layer, head = (None, None) if sender == "embeddings" else sender
        score = actual.embeddings if layer is None else actual.scores[layer, heads if head is None else head]
        wanted = _by_hand(bert, *unpatched, target, receiver, sender, position)
        assert score == pytest.approx(wanted, abs=5e-6), (receiver, sender)
    return actual


@pytest.mark.parametrize("kind, position", [("mask", None), ("next sentence", 2)])
def test_each_path_is_as_by_its_definition(other_bert, pair, kind, position, monkeypatch):
    monkeypatch.setattr("bert_tf.explain.interventions.path_patching.TOKENS_PER_BATCH", 3 * pair[0].length)
    target = mask_target(other_bert, pair[0]) if kind == "mask" else next_sentence_target(other_bert, pair[0])
    for receiver in (None, *_receivers(2, 1), *_receivers(1, 0)[2:]):
        early = receiver is not None and receiver.layer == 1
        senders = ["embeddings", (0, 1), (0, None)] + ([] if early else [(1, 0), (1, None)])
        if receiver is None:
            senders += [(2, 1), (2, None)]
        elif receiver.part == "feed_forward":
            senders.append((receiver.layer, 1))
        actual = _checked(other_bert, pair, target, receiver, senders, position)
        # What is put over at another token than the answer is read at gets there by keys and values alone.
        elsewhere = position is not None and (receiver is None or receiver.layer == 2)
        reaches = not elsewhere or (receiver is not None and receiver.part in ("keys", "values"))
        assert (np.ptp(actual.scores) > 1e-6) == reaches
        assert (actual.receiver, actual.position) == (receiver, position)


@pytest.mark.parametrize("name", [LEFT, APART])
def test_paths_of_one_way_readers(name):
    bert = make_reader(name)
    traces = [bert.trace(text) for text in ("the cat ran on", "the dog ran on")]
    for receiver in (None, *_receivers(1, 0), *_receivers(1, 3)[:3]):
        # The right-to-left heads, the last two, tell of the word that differs where it is yet to come.
        backwards = name == APART and receiver is not None and receiver.head == 3
        target = mask_target(bert, traces[0], *((1, "the") if backwards else (3, "ran")))
        senders = ["embeddings", (0, 1), (0, 3), (0, None)]
        if receiver is None or receiver.part == "feed_forward":
            senders.append((1, 2))
        actual = _checked(bert, traces, target, receiver, senders)
        assert np.ptp(actual.scores) > 1e-6
        if name == APART and receiver is not None and receiver.head is not None:
            # The stacks never meet: nothing leads from one's heads to the other's.
            others = slice(2, 4) if receiver.head < 2 else slice(0, 2)
            np.testing.assert_allclose(actual.scores[0, others], actual.corrupted, atol=1e-5)


def test_layers_that_are_shared_are_senders_and_receivers_of_their_own():
    bert = bert_tf.load(Path(__file__).parents[2] / "golden" / "family" / "albert")
    traces = [bert.trace(text, mask=("w3",)) for text in ("w1 w2 w3 w4", "w1 w9 w3 w4")]
    last = bert.config.num_hidden_layers - 1
    assert len(set(bert.config.layer_groups)) <= last
    for receiver in (None, Receiver("keys", last, 1)):
        _checked(bert, traces, mask_target(bert, traces[0]), receiver, ["embeddings", (0, 0), (0, None), (last - 1, 1)])


def test_what_does_not_come_before_the_receiver_changes_nothing(other_bert, pair):
    target = mask_target(other_bert, pair[0])
    for receiver in (*_receivers(1, 1), None):
        actual = patch_paths(other_bert, *pair, target, receiver)
        layers, columns = np.indices((3, 3))
        wanted = layers < (3 if receiver is None else 1)
        if receiver is not None and receiver.part == "feed_forward":
            wanted |= (layers == 1) & (columns < 2)
        np.testing.assert_array_equal(actual.has_path, wanted)
        np.testing.assert_array_equal(actual.scores[~wanted], actual.corrupted)
        np.testing.assert_array_equal(actual.recovered[~wanted], 0)
        assert (actual.recovered[wanted] != 0).all()


def test_a_head_of_the_first_layer_reads_the_embeddings_alone(other_bert, pair):
    actual = patch_paths(other_bert, *pair, mask_target(other_bert, pair[0]), Receiver("values", 0, 1))
    assert not actual.has_path.any() and (actual.scores == actual.corrupted).all()
    assert actual.embeddings == pytest.approx(actual.whole, abs=1e-6) and abs(actual.share(actual.whole)) > 1e-4


def test_what_the_answer_reads_is_all_there_is(other_bert, pair):
    actual = patch_paths(other_bert, *pair, mask_target(other_bert, pair[0]))
    states = patch_states(other_bert, *pair, actual.target)
    assert (actual.clean, actual.corrupted) == (states.clean, states.corrupted) and actual.whole == actual.clean
    assert actual.share(actual.whole) == 1 and actual.has_path.all()


def test_in_the_last_layer_the_path_to_the_answer_is_all_that_its_block_does():
    """With one layer a path to the answer is what is brought back by the block's output, put over at all tokens."""
    bert = make_bert(seed=5, layers=1, heads=1)
    pair = [bert.trace(text, "it ran") for text in TEXTS]
    target = mask_target(bert, pair[0])
    actual, hooked = patch_paths(bert, *pair, target), bert.hooked()
    good, bad = (hooked.states(one.token_ids[None], one.segments[None])[0] for one in pair)
    everywhere = np.ones((1, pair[0].length, 1), bool)
    ours, theirs = (hooked.values(0, state, ("attn_out", "mlp_out")) for state in (good, bad))
    wanted = hooked.layer(0, bad, replace={"mlp_out": (everywhere, ours["mlp_out"])})
    assert actual.scores[0, 1] == pytest.approx(float(hooked.score(wanted, target)[0]), abs=1e-5)
    # The one head's path goes past the feed-forward block, which is held.
    both = {"attn_out": ours["attn_out"], "mlp_out": theirs["mlp_out"]}
    wanted = hooked.layer(0, bad, replace={name: (everywhere, value) for name, value in both.items()})
    assert actual.scores[0, 0] == pytest.approx(float(hooked.score(wanted, target)[0]), abs=1e-5)
    # At the mask alone, as the answer is read there: patching the block's output there.
    at = patch_paths(bert, *pair, target, position=pair[0].masks[0])
    blocks = patch_blocks(bert, *pair, target, "feed_forward")
    assert at.scores[0, 1] == pytest.approx(blocks.scores[0, pair[0].masks[0]], abs=1e-5)


@pytest.mark.parametrize("receiver", [None, *_receivers(1, 0)[2:]])
def test_the_same_text_twice_has_no_difference(other_bert, pair, receiver):
    actual = patch_paths(other_bert, pair[0], pair[0], mask_target(other_bert, pair[0]), receiver)
    np.testing.assert_allclose([*actual.scores.ravel(), actual.whole, actual.embeddings], actual.clean, atol=1e-5)
    assert np.isnan(actual.recovered).all() and np.isnan(actual.share(actual.whole))


def test_progress_counts_the_senders_and_can_cancel(other_bert, pair):
    seen, target = [], mask_target(other_bert, pair[0])
    patch_paths(other_bert, *pair, target, Receiver("feed_forward", 1), progress=lambda *at: seen.append(at))
    assert seen == [(2, 6), (5, 6), (6, 6)]
    with pytest.raises(Cancelled):
        patch_paths(other_bert, *pair, target, progress=lambda done, total: False)


@pytest.mark.parametrize(
    "receiver, sentence",
    [
        (Receiver("output", 0, 0), "no receiver 'output'; choose from queries"),
        (Receiver("queries", 3, 0), "no layer 3; the model has layers 0 to 2"),
        (Receiver("feed_forward", -1), "no layer -1"),
        (Receiver("queries", 1, 2), "no head 2 in layer 1"),
        (Receiver("keys", 1), "Name the head whose keys"),
        (Receiver("feed_forward", 1, 0), "has no heads"),
    ],
)
def test_a_receiver_that_is_not_there_is_refused(other_bert, pair, receiver, sentence):
    with pytest.raises(InputError, match=sentence):
        patch_paths(other_bert, *pair, mask_target(other_bert, pair[0]), receiver)


def test_other_lengths_and_places_are_refused(other_bert, pair):
    target = mask_target(other_bert, pair[0])
    with pytest.raises(NotComparable, match="equally many tokens"):
        patch_paths(other_bert, pair[0], other_bert.trace("a [MASK]"), target)
    with pytest.raises(MaskPositionError, match="no token 99"):
        patch_paths(other_bert, *pair, target, position=99)
