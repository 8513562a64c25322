"""Ablation: the predictions without some heads, layers, feed-forward blocks or attention to some tokens.

Dimension legend: A ablations, L layers, N heads, T tokens, P masks, V vocabulary, H hidden, B batch, K classes.
Sources: Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (heads set to zero); Geva et al. 2023 (blocked
attention).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option, parse_head, underscored
from bert_tf.errors import InputError, report
from bert_tf.explain.attention.head_vectors import allowed_links
from bert_tf.explain.attribution.target import class_prediction, classifier_settings, classifies
from bert_tf.explain.interventions.ablation_effects import Ablation, AblationEffect, AblationSweep, CleanRun
from bert_tf.inference.answer import check_question
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.predictions import check_top_k, mask_predictions
from bert_tf.inference.trace import NextSentence, SentenceOrder
from bert_tf.layers.hook_points import blocked, forbidden

if TYPE_CHECKING:
    from bert_tf.config import BertConfig
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

# Masks whose distributions over the vocabulary a sweep holds in memory at once.
MASKS_PER_BATCH = 256


def clean_run(bert: Bert, trace: Trace) -> CleanRun:
    """The run without an ablation, with which ablations are compared. One such run serves any number of ablations.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. It must have a mask or a second text, unless the model is a fine-tuned classifier or has a
            replaced-token head.
    Returns:
        `CleanRun`.
    Raises:
        NothingToPredict, MissingHead: the model predicts nothing for this input.
    """
    if not classifies(bert, trace) and "replaced" not in bert.heads:
        check_question(trace.masks, trace.text_b, bert.heads, bert.name)
    states = bert.steps().states(trace.token_ids[None], trace.segments[None])
    answers = _read(bert, trace, states[-1])
    return CleanRun(states, answers)


def ablate(
    bert: Bert,
    trace: Trace,
    ablation: Ablation,
    top_k: int = 5,
    attentions: bool = False,
    attention_shifts: bool = False,
    clean: CleanRun | None = None,
) -> AblationEffect:
    """The full effect of one ablation.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. As in `clean_run`.
        ablation: Ablation. The parts to switch off.
        top_k: int. Predictions for each mask.
        attentions: bool. Whether to return the attention maps.
        attention_shifts: bool. Whether to return every head's attention shift; the maps are not kept for it.
        clean: CleanRun. The `CleanRun` of the trace; None computes it.
    Returns:
        `AblationEffect`. "Before" is the same computation with nothing switched off.
    Raises:
        NothingToPredict, MissingHead: the model predicts nothing for this input.
        InputError: a part that the model or the input does not have, or a bad `top_k`.
    """
    check_top_k(top_k)
    _check(ablation, bert.config, trace.length)
    clean = clean or clean_run(bert, trace)
    last, shifts = _run_one(bert.steps(), clean.states, trace, ablation, attention_shifts)
    before, after = clean.answers, _read(bert, trace, last)
    changes, divergences = _change(before["mlm"][0], after["mlm"])
    maps = _maps(bert.steps(), clean.states, trace, ablation) if attentions else None
    predictions = {
        f"{name}_{when}": prediction
        for when, answers in (("before", before), ("after", after))
        for name, prediction in _predictions(bert, trace, answers, top_k).items()
    }
    return AblationEffect(
        trace.tokens,
        ablation,
        predictions.pop("masks_before"),
        predictions.pop("masks_after"),
        log_probability_changes=changes[0],
        divergences=divergences[0],
        attentions=maps,
        attention_shifts=shifts,
        **predictions,
    )


def sweep(
    bert: Bert, trace: Trace, ablations: Iterable[Ablation], progress: Callable[[int, int], Any] | None = None
) -> AblationSweep:
    """The effects of any number of ablations, one at a time.

    Layers before the first one that an ablation changes are not run again. Ablations with the same first layer run as a
    batch.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. As in `clean_run`.
        ablations: sequence of Ablation. In any order.
        progress: callable(done, total). Called with numbers of ablations; it cancels by returning False.
    Returns:
        `AblationSweep`, in the order of `ablations`.
    Raises:
        As `ablate`. Cancelled: by `progress`.
    """
    ablations = tuple(ablations)
    for ablation in ablations:
        _check(ablation, bert.config, trace.length)
    clean = clean_run(bert, trace)
    states, before = clean.states, clean.answers
    masks = before["mlm"].shape[1]
    changes, divergences = np.zeros((2, len(ablations), masks))
    other = {name: np.zeros(len(ablations)) for name in ("nsp", "sop", "task") if name in before}
    if "replaced" in before:
        other["replaced"] = np.zeros((len(ablations), trace.length))
    done, block = 0, max(1, min(TOKENS_PER_BATCH // trace.length, MASKS_PER_BATCH // max(1, masks)))
    for first, places in _groups(ablations, len(states) - 1):
        for start in range(0, len(places), block):
            chosen = places[start : start + block]
            between = functools.partial(report, progress, done, len(ablations))
            last = _run_batch(bert.steps(), states, trace, [ablations[place] for place in chosen], first, between)
            after = _read(bert, trace, last)
            changes[chosen], divergences[chosen] = _change(before["mlm"][0], after["mlm"])
            for name, values in other.items():
                values[chosen] = _gain(name, before[name][0], after[name])
            done += len(chosen)
            report(progress, done, len(ablations))
    followed = before["mlm"][0].argmax(axis=1)
    words = tuple(bert.tokenizer.id_to_token(int(token_id)) for token_id in followed)
    other_changes = map(other.get, ("nsp", "sop", "task", "replaced"))
    masked = trace.masks if masks else ()
    return AblationSweep(trace.tokens, masked, ablations, followed, words, changes, divergences, *other_changes)


#: The kinds of parts that `ablation_or_sweep` can switch off one at a time.
SWEEPS = ("heads", "layers", "feed_forward", "tokens")


def ablation_or_sweep(
    bert: Bert,
    trace: Trace,
    heads: Iterable[tuple[int, int]] = (),
    layers: Iterable[int] = (),
    feed_forward: Iterable[int] = (),
    tokens: Iterable[int] = (),
    sweep_over: str = "heads",
    top_k: int = 5,
    progress: Callable[[int, int], Any] | None = None,
) -> AblationEffect | AblationSweep:
    """Switch off the named parts together; if none is named, switch off each part of one kind by itself.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. As in `clean_run`.
        heads, layers, feed_forward, tokens: sequences. As in `Ablation`.
        sweep_over: str. One of `SWEEPS`.
        top_k: int. Predictions for each mask.
        progress: callable(done, total). As in `sweep`.
    Returns:
        `AblationEffect`, or `AblationSweep` if no part is named.
    Raises:
        As `ablate` and `sweep`.
    """
    named = Ablation(tuple(heads), tuple(layers), tuple(feed_forward), tuple(tokens))
    if named != Ablation():
        return ablate(bert, trace, named, top_k, attention_shifts=True)
    if sweep_over not in SWEEPS:
        raise InputError(f"sweep_over must be one of {', '.join(SWEEPS)}, not {sweep_over!r:.40}.")
    if sweep_over == "tokens":
        return sweep(bert, trace, every_token(trace), progress)
    every = {"heads": every_head, "layers": every_layer, "feed_forward": every_feed_forward}
    return sweep(bert, trace, every[sweep_over](bert.config), progress)


def every_head(config: BertConfig) -> tuple[Ablation, ...]:
    """One `Ablation` for each head, ordered by layer and head."""
    return tuple(
        Ablation(heads=((layer, head),))
        for layer in range(config.num_hidden_layers)
        for head in range(config.num_attention_heads)
    )


def every_layer(config: BertConfig) -> tuple[Ablation, ...]:
    """One `Ablation` for each layer."""
    return tuple(Ablation(layers=(layer,)) for layer in range(config.num_hidden_layers))


def every_feed_forward(config: BertConfig) -> tuple[Ablation, ...]:
    """One `Ablation` for each feed-forward block."""
    return tuple(Ablation(feed_forward=(layer,)) for layer in range(config.num_hidden_layers))


def every_token(trace: Trace) -> tuple[Ablation, ...]:
    """One `Ablation` for the attention to each token, in all layers."""
    return tuple(Ablation(tokens=(position,)) for position in range(trace.length))


def _groups(ablations, layers):
    """Pairs (first layer, indices of the ablations that begin there), in the order of the layers."""
    groups = defaultdict(list)
    for place, ablation in enumerate(ablations):
        groups[ablation.first_layer(layers)].append(place)
    return sorted(groups.items())


def _check(ablation, config, length):
    """Raise InputError if an ablation names a missing part or leaves a token nothing to attend to."""
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    named_layers = [
        *ablation.layers,
        *ablation.feed_forward,
        *(layer for layer, _ in ablation.heads),
        *(ablation.attention_layers or ()),
    ]
    for name, numbers, limit in (
        ("layer", named_layers, layers),
        ("head", [head for _, head in ablation.heads], heads),
        ("token", [*ablation.tokens, *sum(map(tuple, ablation.links), ())], length),
    ):
        for number in numbers:
            if not 0 <= number < limit:
                raise InputError(f"There is no {name} {number}: they are numbered 0 to {limit - 1}.")
    for row in range(length):
        blocked_keys = {*ablation.tokens, *(key for query, key in ablation.links if query == row)}
        if len(blocked_keys) == length:
            raise InputError(f"Token {row} would have nothing left to attend to: leave it at least one token.")


def _run_batch(hooked, states, trace, ablations, first, between):
    """The last hidden state [B, T, H] under B ablations, none of which changes a layer before `first`.

    `between` is called after each layer, so that a server can use the model for others meanwhile.
    """
    x = np.repeat(states[min(first, len(states) - 1)], len(ablations), axis=0)
    for layer in range(first, len(states) - 1):
        x = _layer_without(hooked, layer, x, trace, ablations)
        between()
    return x


def _run_one(hooked, states, trace, ablation, attention_shifts):
    """The last hidden state [1, T, H] under one ablation, and every head's attention shift [L, N] or None."""
    layers = len(states) - 1
    first = ablation.first_layer(layers)
    shifts = np.zeros((layers, hooked.config.num_attention_heads))
    x = states[first]
    for layer in range(first, layers):
        bias = _bias(layer, trace, (ablation,))
        # The input of the first changed layer is unchanged, and so is its attention unless attention is blocked.
        if not attention_shifts or (layer == first and bias is None):
            x = _layer_without(hooked, layer, x, trace, (ablation,))
            continue
        before = hooked.values(layer, states[layer], ("pattern",))["pattern"][0]
        x, after = _layer_without(hooked, layer, x, trace, (ablation,), maps=True)
        lost = np.maximum(np.asarray(before) - np.asarray(after[0]), 0)
        shifts[layer] = lost.sum(axis=-1, dtype=np.float64).mean(axis=-1)
    return x, shifts if attention_shifts else None


def _layer_without(hooked, layer, x, trace, ablations, maps=False):
    """The hidden state [B, T, H] after a layer with input `x`; with `maps` also the attention maps [B, N, T, T]."""
    heads = np.zeros((len(ablations), hooked.config.num_attention_heads, 1, 1), bool)
    for row, ablation in enumerate(ablations):
        heads[row, [head for head_layer, head in ablation.heads if head_layer == layer]] = True
    feed_forward = np.array([layer in ablation.feed_forward for ablation in ablations])[:, None, None]
    off = np.array([layer in ablation.layers for ablation in ablations])[:, None, None]
    bias = _bias(layer, trace, ablations)
    alone = _nothing_left(hooked.config, layer, bias)
    replace = {
        "z": (heads | alone, np.zeros((1, 1, 1, 1), np.float32)),
        "mlp_out": (feed_forward, np.zeros((1, 1, 1), np.float32)),
        "resid_post": (off, hooked.unchanged(layer, x)),
    }
    replace = {point: pair for point, pair in replace.items() if pair[0].any()}
    points = ("resid_post", "pattern") if maps else ("resid_post",)
    values = hooked.values(layer, x, points, bias, replace)
    return (values["resid_post"], np.where(alone, 0, values["pattern"])) if maps else values["resid_post"]


def _bias(layer, trace, ablations):
    """The attention bias [B, 1, T, T] of B ablations in a layer; None if none of them blocks attention there."""

    def applies(ablation):
        return ablation.attention_layers is None or layer in ablation.attention_layers

    if not any((ablation.tokens or ablation.links) and applies(ablation) for ablation in ablations):
        return None
    return np.concatenate(
        [blocked(a.tokens, trace.length, a.links) if applies(a) else blocked((), trace.length) for a in ablations]
    )


def _nothing_left(config, layer, bias):
    """Whether a bias [B, 1, T, T] blocks all that a token may attend to in a head of the layer.

    bool [B, N, T, 1]; [1, 1, 1, 1] without a bias.
    """
    if bias is None:
        return np.zeros((1, 1, 1, 1), bool)
    allowed = allowed_links(config, bias.shape[-1], layer)
    return ~(allowed & ~forbidden(bias)).any(axis=-1, keepdims=True)


def _read(bert, trace, last):
    """The heads' outputs for last hidden states [B, T, H]: a dict of float32 arrays.

    "mlm": log-probabilities at the masks [B, P, V]; P is 0 without an MLM head. "nsp" or "sop" [B, 2] for a pair,
    "replaced" [B, T, 2] for a discriminator and "task" [B, K] for a classifier, if the model has such a head.
    """
    rows, masks = last.shape[0], list(trace.masks) if "mlm" in bert.heads else []
    steps = bert.steps()
    outputs = {"mlm": np.zeros((rows, len(masks), bert.config.vocab_size), np.float32)}
    if masks:
        vectors = np.asarray(steps.read(last))[:, masks].reshape(rows * len(masks), -1)
        outputs["mlm"] = np.asarray(steps.mlm_log_probabilities(vectors)).reshape(rows, len(masks), -1)
    if trace.text_b is not None and "nsp" in bert.heads:
        outputs["nsp"] = np.asarray(steps.nsp_log_probabilities(last))
    if trace.text_b is not None and "sop" in bert.heads:
        outputs["sop"] = np.asarray(steps.sop_log_probabilities(last))
    if "replaced" in bert.heads:
        outputs["replaced"] = np.asarray(steps.replaced_log_probabilities(last))
    if classifies(bert, trace):
        outputs["task"] = np.asarray(steps.class_scores(last))
    return outputs


def _predictions(bert, trace, answers, top_k):
    """A dict of one input's predictions from the heads' outputs: "masks", "nsp", "sop", "classes" and "replaced".

    A missing head has None; without masks "masks" is empty.
    """
    masks = trace.masks if answers["mlm"].shape[1] else ()
    originals = trace.original_ids[list(masks)]
    return {
        "masks": mask_predictions(answers["mlm"][0], masks, originals, bert.tokenizer, top_k) if masks else (),
        "nsp": NextSentence.from_logits(answers["nsp"][0]) if "nsp" in answers else None,
        "sop": SentenceOrder.from_logits(answers["sop"][0]) if "sop" in answers else None,
        "classes": class_prediction(classifier_settings(bert), answers["task"][0]) if "task" in answers else None,
        "replaced": np.exp(answers["replaced"][0, :, 1], dtype=np.float64) if "replaced" in answers else None,
    }


def _gain(head, before, after):
    """The change of the predictions of a head other than the MLM head.

    float64 [B] from its scores before [2 or K] and after [B, 2 or K]; for a replaced-token head float64 [B, T] from [T,
    2] and [B, T, 2].
    """
    if head == "replaced":
        return np.exp(after[..., 1], dtype=np.float64) - np.exp(before[..., 1], dtype=np.float64)
    if head == "task":
        best = int(before.argmax())
        return (after[:, best] - before[best]).astype(np.float64)
    return np.exp(after[:, 0], dtype=np.float64) - np.exp(before[0], dtype=np.float64)


def _change(before, after):
    """Log-probability changes and divergences, float64 [B, P], from log-probabilities [P, V] and [B, P, V]."""
    best = before.argmax(axis=1)
    rows = np.arange(len(best))
    changes = after[:, rows, best] - before[rows, best]
    divergences = np.zeros(changes.shape)
    for row, logs in enumerate(after):  # one at a time: [B, P, V] is large already
        mixture = np.logaddexp(before, logs) - np.log(2)
        halves = (np.exp(side) * (side - mixture) for side in (before, logs))
        divergences[row] = sum(half.sum(axis=1, dtype=np.float64) for half in halves) / (2 * np.log(2))
    return changes.astype(np.float64), np.clip(divergences, 0, 1)


def _maps(hooked, states, trace, ablation):
    """The attention maps of all layers under one ablation, float32 [L, N, T, T]."""
    x, maps = states[0], []
    for layer in range(len(states) - 1):
        x, patterns = _layer_without(hooked, layer, x, trace, (ablation,), maps=True)
        maps.append(np.asarray(patterns[0]))
    return np.stack(maps)


ANALYSIS = Analysis(
    name="ablation",
    function=ablation_or_sweep,
    summary="what changes without some heads, layers, blocks or the attention to tokens",
    source="Michel et al. 2019, Are Sixteen Heads Really Better than One?; Geva et al. 2023",
    options=(
        Option("heads", "heads to switch off, from 0", several=True, default=(), metavar="L.H", parse=parse_head),
        Option("layers", "layers to switch off, from 0", int, several=True, default=(), metavar="L"),
        Option(
            "feed_forward",
            "layers whose feed-forward block to switch off",
            int,
            several=True,
            default=(),
            metavar="L",
        ),
        Option("tokens", "positions that no token may attend to", int, several=True, default=(), metavar="P"),
        Option(
            "sweep_over",
            "the kind of parts to switch off one at a time if none is named",
            default="heads",
            choices=SWEEPS,
            parse=underscored,
            metavar="PARTS",
            aliases=("sweep",),
        ),
        TOP_K,
    ),
)
