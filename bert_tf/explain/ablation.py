"""What happens without a part: heads, whole layers, feed-forward blocks, attention to a token switched off.

Dimension legend: A ablations, L layers, N heads, T tokens, P masks, V vocabulary, H hidden, B batch. After
Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (heads set to zero), and Geva et al. 2023
(attention blocked).
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.explain.answer import check_question
from bert_tf.explain.errors import InputError, report
from bert_tf.explain.predictions import check_top_k, mask_predictions
from bert_tf.explain.trace import NextSentence

# Tokens in one pass of a sweep, and masks whose distributions over the vocabulary are held at once.
TOKENS_AT_ONCE = 1024
MASKS_AT_ONCE = 256


@dataclass(frozen=True)
class Ablation:
    """What to switch off; everything is counted from 0. Parts may be combined.

    Attributes:
        heads: (layer, head) pairs that add nothing. The projection's bias, no head's own, stays.
        layers: layers that hand on what they were given.
        feed_forward: layers whose feed-forward block adds nothing; its residual and norm stay.
        tokens: positions no token attends to; the others share the attention.
        links: (from, to) pairs of positions: `from` does not attend to `to`.
        attention_layers: the layers where `tokens` and `links` hold; None for all.
    """

    heads: tuple = ()
    layers: tuple = ()
    feed_forward: tuple = ()
    tokens: tuple = ()
    links: tuple = ()
    attention_layers: Optional[tuple] = None

    def first_layer(self, count):
        """The first of `count` layers that it touches; `count` if none."""
        touched = [*(layer for layer, _ in self.heads), *self.layers, *self.feed_forward]
        if self.tokens or self.links:
            touched += range(count) if self.attention_layers is None else self.attention_layers
        return min(touched, default=count)


@dataclass(frozen=True, eq=False)
class AblationEffect:
    """The answers with and without a part.

    Attributes:
        ablation: the `Ablation`.
        before, after: tuples of P `MaskPrediction`.
        nsp_before, nsp_after: `NextSentence`, or None as in a trace.
        changes: float64 [P], natural logarithm of what each mask's likeliest token before has gained in
            probability: negative if the part speaks for it.
        divergences: float64 [P], Jensen-Shannon divergence of the two distributions in bits.
        attentions: float32 [L, N, T, T] without the part, a layer switched off shown as it would look; None
            if not asked for.
        shifts: float64 [L, N], share of its attention that each head turns elsewhere: total variation
            distance of the two maps, the mean over the tokens that look; None if not asked for.
    """

    ablation: Ablation
    before: tuple
    after: tuple
    nsp_before: Optional[NextSentence]
    nsp_after: Optional[NextSentence]
    changes: np.ndarray
    divergences: np.ndarray
    attentions: Optional[np.ndarray] = None
    shifts: Optional[np.ndarray] = None


@dataclass(frozen=True, eq=False)
class Sweep:
    """The effect of many ablations, one at a time.

    Attributes:
        ablations: the A `Ablation`s.
        token_ids: int64 [P], the token followed at each mask: the likeliest before.
        changes, divergences: float64 [A, P], as in `AblationEffect`.
        nsp_changes: float64 [A], change of P(IsNext); None if the trace has no pair.
    """

    ablations: tuple
    token_ids: np.ndarray
    changes: np.ndarray
    divergences: np.ndarray
    nsp_changes: Optional[np.ndarray]

    def ranked(self):
        """Indices of the ablations, the greatest effect first: on the masks (the mean divergence) if there
        are any, otherwise on the next-sentence answer."""
        effect = self.divergences.mean(axis=1) if self.divergences.shape[1] else np.abs(self.nsp_changes)
        return np.argsort(-effect, kind="stable")


def ablate(bert, trace, ablation, top_k=5, attentions=False, shifts=False):
    """One ablation, in full.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with a mask or a second text.
        ablation: an `Ablation`. top_k: predictions a mask. attentions: whether the maps come along.
        shifts: whether the change of every head's attention does; no map is kept for it.
    Returns:
        `AblationEffect`. "Before" is the same computation with nothing switched off.
    Raises:
        NothingToPredict, MissingHead: there is no answer to change.
        InputError: a part the model or the input does not have; a bad `top_k`.
    """
    check_top_k(top_k)
    states = _unharmed(bert, trace, (ablation,))
    first = ablation.first_layer(len(states) - 1)
    last = _without(bert.opened, states, trace, (ablation,), first)
    (before, nsp_before), (after, nsp_after) = (_read(bert, trace, state) for state in (states[-1], last))
    originals = trace.original_ids[list(trace.masks)]
    shown = [
        mask_predictions(logs[0], trace.masks, originals, bert.tokenizer, top_k) if trace.masks else ()
        for logs in (before, after)
    ]
    nsp = [None if logs is None else NextSentence.from_logits(logs[0]) for logs in (nsp_before, nsp_after)]
    changes, divergences = _change(before[0], after)
    maps = _maps(bert.opened, states, trace, ablation) if attentions else None
    moved = _shifts(bert.opened, states, trace, ablation, first) if shifts else None
    return AblationEffect(ablation, *shown, *nsp, changes[0], divergences[0], maps, moved)


def sweep(bert, trace, ablations, progress=None):
    """Any number of ablations, each alone.

    Layers before the first that is touched are not run again, and ablations that begin at the same layer run
    as a batch.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with a mask or a second text.
        ablations: `Ablation`s, in any order.
        progress: callable(done, total) in ablations; returning False cancels.
    Returns:
        `Sweep`, in the order of `ablations`.
    Raises:
        As `ablate`; Cancelled by `progress`.
    """
    ablations = tuple(ablations)
    states = _unharmed(bert, trace, ablations)
    before, nsp_before = _read(bert, trace, states[-1])
    changes, divergences = np.zeros((2, len(ablations), len(trace.masks)))
    nsp = None if nsp_before is None else np.zeros(len(ablations))
    done, block = 0, max(1, min(TOKENS_AT_ONCE // trace.length, MASKS_AT_ONCE // max(1, len(trace.masks))))
    for first, places in _groups(ablations, len(states) - 1):
        for start in range(0, len(places), block):
            chosen = places[start : start + block]
            last = _without(bert.opened, states, trace, [ablations[place] for place in chosen], first)
            after, nsp_after = _read(bert, trace, last)
            changes[chosen], divergences[chosen] = _change(before[0], after)
            if nsp is not None:
                nsp[chosen] = np.exp(nsp_after[:, 0]) - np.exp(nsp_before[0, 0])
            done += len(chosen)
            report(progress, done, len(ablations))
    return Sweep(ablations, before[0].argmax(axis=1), changes, divergences, nsp)


def every_head(config):
    """An `Ablation` of each head, in the order of layers, then heads."""
    return tuple(
        Ablation(heads=((layer, head),))
        for layer in range(config.num_hidden_layers)
        for head in range(config.num_attention_heads)
    )


def every_layer(config):
    """An `Ablation` of each layer."""
    return tuple(Ablation(layers=(layer,)) for layer in range(config.num_hidden_layers))


def every_feed_forward(config):
    """An `Ablation` of each feed-forward block."""
    return tuple(Ablation(feed_forward=(layer,)) for layer in range(config.num_hidden_layers))


def every_token(trace):
    """An `Ablation` of the attention to each token, in all layers."""
    return tuple(Ablation(tokens=(position,)) for position in range(trace.length))


def _groups(ablations, layers):
    groups = defaultdict(list)
    for place, ablation in enumerate(ablations):
        groups[ablation.first_layer(layers)].append(place)
    return sorted(groups.items())


def _unharmed(bert, trace, ablations):
    """All hidden states of the trace's input with nothing switched off, after the checks."""
    check_question(trace.masks, trace.text_b, bert.heads, bert.name)
    for ablation in ablations:
        _check(ablation, bert.config, trace.length)
    return bert.opened.states(trace.token_ids[None], trace.segments[None])


def _check(ablation, config, length):
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    wanted = [
        *ablation.layers,
        *ablation.feed_forward,
        *(layer for layer, _ in ablation.heads),
        *(ablation.attention_layers or ()),
    ]
    for name, numbers, limit in (
        ("layer", wanted, layers),
        ("head", [head for _, head in ablation.heads], heads),
        ("token", [*ablation.tokens, *sum(map(tuple, ablation.links), ())], length),
    ):
        for number in numbers:
            if not 0 <= number < limit:
                raise InputError(f"There is no {name} {number}: they are numbered 0 to {limit - 1}.")
    for row in range(length):
        hidden = {*ablation.tokens, *(to for looking, to in ablation.links if looking == row)}
        if len(hidden) == length:
            raise InputError(
                f"Token {row} would have nothing left to attend to: leave it at least one token."
            )


def _without(opened, states, trace, ablations, first):
    """The last hidden state [B, T, H] under B ablations, none of which touches a layer before `first`."""
    import tensorflow as tf

    x = tf.repeat(states[min(first, len(states) - 1)], len(ablations), axis=0)
    for layer in range(first, len(states) - 1):
        x = _layer_without(opened, layer, x, trace, ablations)
    return x


def _layer_without(opened, layer, x, trace, ablations):
    import tensorflow as tf

    off = np.array([layer in ablation.layers for ablation in ablations])
    heads = np.ones((len(ablations), opened.config.num_attention_heads), np.float32)
    for row, ablation in enumerate(ablations):
        heads[row, [head for where, head in ablation.heads if where == layer]] = 0
    feed_forward = np.array([layer not in ablation.feed_forward for ablation in ablations], np.float32)
    y = opened.layer(layer, x, _bias(layer, trace, ablations), heads, feed_forward)
    return tf.where(off[:, None, None], x, y) if off.any() else y


def _bias(layer, trace, ablations):
    from bert_tf.explain.open_model import blocked

    def here(ablation):
        return ablation.attention_layers is None or layer in ablation.attention_layers

    if not any((ablation.tokens or ablation.links) and here(ablation) for ablation in ablations):
        return None
    return np.concatenate(
        [
            blocked(a.tokens, trace.length, a.links) if here(a) else blocked((), trace.length)
            for a in ablations
        ]
    )


def _read(bert, trace, last):
    """Log-probabilities at the masks [B, P, V] and of the next-sentence head [B, 2] or None, from a last
    state."""
    import tensorflow as tf

    rows, masks = last.shape[0], list(trace.masks)
    found = np.zeros((rows, 0, bert.config.vocab_size), np.float32)
    if masks:
        picked = tf.reshape(tf.gather(bert.opened.read(last), masks, axis=1), (rows * len(masks), -1))
        found = bert.opened.mlm_log_probabilities(picked).numpy().reshape(rows, len(masks), -1)
    paired = trace.text_b is not None and "nsp" in bert.heads
    return found, bert.opened.nsp_log_probabilities(last).numpy() if paired else None


def _change(before, after):
    """(changes, divergences), float64 [B, P], from log-probabilities [P, V] and [B, P, V]."""
    best = before.argmax(axis=1)
    rows = np.arange(len(best))
    changes = after[:, rows, best] - before[rows, best]
    divergences = np.zeros(changes.shape)
    for row, logs in enumerate(after):  # one at a time: [B, P, V] is large already
        middle = np.logaddexp(before, logs) - np.log(2)
        halves = (np.exp(side) * (side - middle) for side in (before, logs))
        divergences[row] = sum(half.sum(axis=1, dtype=np.float64) for half in halves) / (2 * np.log(2))
    return changes.astype(np.float64), np.clip(divergences, 0, 1)


def _maps(opened, states, trace, ablation):
    x, maps = states[0], []
    for layer in range(len(states) - 1):
        maps.append(opened.attention_maps(layer, x, _bias(layer, trace, (ablation,)))[0].numpy())
        x = _layer_without(opened, layer, x, trace, (ablation,))
    return np.stack(maps)


def _shifts(opened, states, trace, ablation, first):
    layers = len(states) - 1
    shifts = np.zeros((layers, opened.config.num_attention_heads))
    x = states[min(first, layers)]
    for layer in range(first, layers):
        before = opened.attention_maps(layer, states[layer])[0].numpy()
        after = opened.attention_maps(layer, x, _bias(layer, trace, (ablation,)))[0].numpy()
        shifts[layer] = np.abs(after - before).sum(axis=-1, dtype=np.float64).mean(axis=-1) / 2
        x = _layer_without(opened, layer, x, trace, (ablation,))
    return shifts
