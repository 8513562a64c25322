"""Ablation: the predictions without some heads, layers, feed-forward blocks or attention to some tokens.

Dimension legend: A ablations, L layers, N heads, T tokens, P masks, V vocabulary, H hidden, B batch, K classes.
Sources: Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (heads set to zero); Geva et al. 2023 (blocked
attention).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option, parse_head, underscored
from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import class_prediction, classifier_settings
from bert_tf.inference.answer import check_question
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.predictions import check_top_k, mask_predictions
from bert_tf.inference.trace import NextSentence, SentenceOrder
from bert_tf.layers.hook_points import blocked
from bert_tf.results import Result, frame, frame_text

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.config import BertConfig
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

# Masks whose distributions over the vocabulary a sweep holds in memory at once.
MASKS_PER_BATCH = 256


@dataclass(frozen=True)
class Ablation:
    """What to switch off; all numbers count from 0. Parts may be combined.

    Attributes:
        heads: tuple of (layer, head). These heads add nothing. The bias of the output projection, which belongs to no
            head, stays.
        layers: tuple of int. These layers return their input unchanged.
        feed_forward: tuple of int. The feed-forward blocks of these layers add nothing; their residual connection and
            normalisation stay.
        tokens: tuple of int. No token attends to these positions; the attention is spread over the others.
        links: tuple of (from, to). Pairs of positions: `from` does not attend to `to`.
        attention_layers: tuple of int. The layers in which `tokens` and `links` apply; None for all.

    Example:
        >>> bert = bert_tf.load()
        >>> ablate(bert, bert.trace("The cat sat on the [MASK]."), Ablation(heads=((3, 11),), layers=(0,)))
    """

    heads: tuple = ()
    layers: tuple = ()
    feed_forward: tuple = ()
    tokens: tuple = ()
    links: tuple = ()
    attention_layers: tuple | None = None

    @property
    def name(self) -> str:
        """The parts that are switched off: "layer 3, head 11"."""
        parts = [
            *(f"layer {layer}, head {head}" for layer, head in self.heads),
            *(f"layer {layer}" for layer in self.layers),
            *(f"layer {layer}, feed-forward" for layer in self.feed_forward),
            *(f"attention to token {position}" for position in self.tokens),
            *(f"attention from token {query} to {key}" for query, key in self.links),
        ]
        return " + ".join(parts) or "nothing"

    def first_layer(self, count: int) -> int:
        """The first of `count` layers that the ablation changes; `count` if it changes none."""
        changed = [*(layer for layer, _ in self.heads), *self.layers, *self.feed_forward]
        if self.tokens or self.links:
            changed += range(count) if self.attention_layers is None else self.attention_layers
        return min(changed, default=count)


@dataclass(frozen=True, eq=False)
class CleanRun:
    """A trace's input with nothing switched off. Every ablation of it is compared with this run.

    Attributes:
        states: list. L + 1 hidden states, float32 [1, T, H], as arrays or tensors.
        answers: dict. The heads' outputs for the last hidden state; for `ablate` and `sweep`.
    """

    states: list
    answers: dict


@dataclass(frozen=True, eq=False)
class AblationEffect(Result, figures={"answers": "bert_tf.plots.interventions.ablation:ablation_effect"}):
    """The predictions with and without a part.

    Attributes:
        tokens: tuple of str. The T tokens.
        ablation: Ablation. The parts that are switched off.
        before, after: tuple of MaskPrediction. One for each of the P masks.
        nsp_before, nsp_after: NextSentence. None under the same conditions as in a trace.
        sop_before, sop_after: SentenceOrder. None under the same conditions as in a trace.
        classes_before, classes_after: dict. A fine-tuned classifier's classes and their probabilities, or "value" and
            the value of a regression; None for other models.
        replaced_before, replaced_after: np.ndarray. float64 [T], the probability of each token that it replaces
            another; None for models without a replaced-token head.
        log_probability_changes: np.ndarray. float64 [P], the change of the log-probability (natural logarithm) of the
            token that was likeliest at each mask before. A negative change means that the part supports the token.
        divergences: np.ndarray. float64 [P], Jensen-Shannon divergence of the two distributions, in bits.
        attentions: np.ndarray. float32 [L, N, T, T], the attention maps without the part. A layer that is switched off
            has the maps that it would compute. None if not asked for.
        attention_shifts: np.ndarray. float64 [L, N], the share of its attention that each head moves to other tokens:
            the total variation distance of the two maps, averaged over the query tokens. None if not asked for.
    """

    tokens: tuple
    ablation: Ablation
    before: tuple
    after: tuple
    nsp_before: NextSentence | None
    nsp_after: NextSentence | None
    log_probability_changes: np.ndarray
    divergences: np.ndarray
    attentions: np.ndarray | None = None
    attention_shifts: np.ndarray | None = None
    sop_before: SentenceOrder | None = None
    sop_after: SentenceOrder | None = None
    classes_before: dict | None = None
    classes_after: dict | None = None
    replaced_before: np.ndarray | None = None
    replaced_after: np.ndarray | None = None

    def to_frame(self) -> pd.DataFrame:
        """A row for each prediction with its probability before and after; a row for each head with its attention
        shift.

        A probability is NaN where the token is not among the stored predictions.
        """
        rows = [*self._mask_rows()]
        pair_predictions: tuple[tuple[str, Any, Any], ...] = (
            ("is_next", self.nsp_before, self.nsp_after),
            ("in_order", self.sop_before, self.sop_after),
        )
        for name, before, after in pair_predictions:
            if before is not None:
                rows.append((name, None, None, "", before[0], after[0]))
        classes_after = self.classes_after or {}
        for label, probability in (self.classes_before or {}).items():
            rows.append(("class", None, None, label, probability, classes_after[label]))
        if self.replaced_before is not None and self.replaced_after is not None:
            for position, both in enumerate(zip(self.tokens, self.replaced_before, self.replaced_after)):
                rows.append(("replaced", position, None, *both))
        table = frame(dict(zip(("measure", "position", "layer", "answer", "before", "after"), zip(*rows))))
        table.insert(3, "head", None)
        table["change"] = table["after"] - table["before"]
        if self.attention_shifts is not None:
            table = _with_shifts(table, self.attention_shifts)
        return table.astype({"position": "Int64", "layer": "Int64", "head": "Int64", "before": float, "after": float})

    def _mask_rows(self):
        for before, after in zip(self.before, self.after):
            probabilities = [
                {prediction.token: prediction.probability for prediction in mask.predictions}
                for mask in (before, after)
            ]
            for token in dict.fromkeys([*probabilities[0], *probabilities[1]]):
                yield ("mask", before.position, None, token, *(side.get(token, np.nan) for side in probabilities))

    def to_text(self) -> str:
        """The predictions, then the five heads with the greatest attention shifts."""
        table = self.to_frame()
        is_shift = table["measure"] == "attention_shift"
        lines = [frame_text(table[~is_shift][["measure", "position", "answer", "before", "after"]])]
        shifts = table[is_shift & (table["change"] > 0)].sort_values("change", ascending=False, kind="stable")
        lines += [
            f"layer {layer}, head {head}: {share:.1%} of its attention goes elsewhere"
            for layer, head, share in shifts[["layer", "head", "change"]].head(5).itertuples(index=False)
        ]
        return "\n".join(lines)


def _with_shifts(table, attention_shifts):
    """The table with a row for each head's attention shift, from float64 [L, N]."""
    import pandas

    layers, heads = attention_shifts.shape
    shifts = frame(
        {
            "measure": "attention_shift",
            "layer": np.repeat(range(layers), heads),
            "head": np.tile(range(heads), layers),
            "answer": "",
            "change": attention_shifts.ravel(),
        }
    )
    return pandas.concat([table, shifts], ignore_index=True)


@dataclass(frozen=True, eq=False)
class ScoreDrops(
    Result,
    figures={
        "strongest": "bert_tf.plots.interventions.ablation:strongest_drops",
        "map": "bert_tf.plots.interventions.ablation:score_drop_map",
    },
):
    """How much one prediction's score drops without each of many parts.

    Attributes:
        tokens: tuple of str. The T tokens.
        answer: str or int. The prediction, as in `AblationSweep.score_drop`.
        unit: str. The unit of the drops.
        ablations: tuple of Ablation. The A ablations.
        score_drops: np.ndarray. float64 [A]; positive if the part supports the prediction.
    """

    tokens: tuple
    answer: object
    unit: str
    ablations: tuple
    score_drops: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """A row for each ablation, the strongest first."""
        order = np.argsort(-np.abs(self.score_drops), kind="stable")
        return frame({"part": [self.ablations[index].name for index in order], "score_drop": self.score_drops[order]})


@dataclass(frozen=True, eq=False)
class AblationSweep(Result, figures={"strongest": "bert_tf.plots.interventions.ablation:strongest_ablations"}):
    """The effects of many ablations, one at a time.

    Attributes:
        tokens: tuple of str. The T tokens.
        masks: tuple of int. The P masked positions.
        ablations: tuple of Ablation. The A ablations.
        token_ids: np.ndarray. int64 [P], at each mask the token that was likeliest before; its probability is followed.
        followed_tokens: tuple of str. The same tokens as strings.
        log_probability_changes, divergences: np.ndarray. float64 [A, P], as in `AblationEffect`.
        nsp_changes: np.ndarray. float64 [A], the change of P(IsNext); None if the trace has no second text or the model
            no next-sentence head.
        sop_changes: np.ndarray. float64 [A], the change of P(in order); None if the trace has no second text or the
            model no sentence-order head.
        class_changes: np.ndarray. float64 [A], the change of the log-probability (natural logarithm) of the class that
            was likeliest before, or of a regression's value; None if the model does not classify.
        replaced_changes: np.ndarray. float64 [A, T], the change of each token's probability of being replaced; None if
            the model has no replaced-token head.
    """

    tokens: tuple
    masks: tuple
    ablations: tuple
    token_ids: np.ndarray
    followed_tokens: tuple
    log_probability_changes: np.ndarray
    divergences: np.ndarray
    nsp_changes: np.ndarray | None
    sop_changes: np.ndarray | None = None
    class_changes: np.ndarray | None = None
    replaced_changes: np.ndarray | None = None

    def to_frame(self) -> pd.DataFrame:
        """A row for each ablation, the greatest effect first, and a column for each kind of prediction."""
        columns: dict[str, Any] = {"part": [ablation.name for ablation in self.ablations]}
        if self.divergences.shape[1]:
            columns["log_probability_change"] = self.log_probability_changes.mean(axis=1)
            columns["divergence_bits"] = self.divergences.mean(axis=1)
        others = {
            "class_change": self.class_changes,
            "is_next_change": self.nsp_changes,
            "in_order_change": self.sop_changes,
            "replaced_change": None if self.replaced_changes is None else np.abs(self.replaced_changes).mean(axis=1),
        }
        columns |= {name: values for name, values in others.items() if values is not None}
        return frame(columns).iloc[self.ranked()].reset_index(drop=True)

    def ranked(self) -> np.ndarray:
        """Indices of the ablations, the greatest effect first: int64 [A].

        The effect is the mean divergence at the masks if there are masks; otherwise the change of the class, otherwise
        of the prediction for the pair, otherwise the mean change of the tokens' replaced-token probabilities.
        """
        effect: Any = self.divergences.mean(axis=1) if self.divergences.shape[1] else None
        for changes in (self.class_changes, self.nsp_changes, self.sop_changes):
            effect = np.abs(changes) if effect is None and changes is not None else effect
        if effect is None and self.replaced_changes is not None:
            effect = np.abs(self.replaced_changes).mean(axis=1)
        return np.argsort(-effect, kind="stable")

    def score_drops(self, trace: Trace, answer: str | int, unit: str) -> ScoreDrops:
        """The `ScoreDrops` of one prediction.

        Args:
            trace, answer: as in `score_drop`.
            unit: str. The unit of the drops.
        """
        return ScoreDrops(self.tokens, answer, unit, self.ablations, self.score_drop(trace, answer))

    def score_drop(self, trace: Trace, answer: str | int) -> np.ndarray:
        """How much a prediction's score drops without each part: positive if the part supports the prediction.

        Args:
            trace: Trace. The trace that was swept.
            answer: str or int. "masks": the mean over the likeliest token at each mask. "class": the likeliest class or
                a regression's value. "next": the likelier answer about the pair. The position of a token: the likelier
                answer of a discriminator about it.
        Returns:
            float64 [A]: log-probability in nats; for a pair or a token, probability.
        Raises:
            InputError: the sweep has no such prediction.
        """
        changes, probability = None, 1.0
        if answer == "masks" and self.divergences.shape[1]:
            changes = self.log_probability_changes.mean(axis=1)
        elif answer == "class":
            changes = self.class_changes
        elif answer == "next" and self.nsp_changes is not None and trace.nsp is not None:
            changes, probability = self.nsp_changes, trace.nsp.is_next
        elif answer == "next" and self.sop_changes is not None and trace.sop is not None:
            changes, probability = self.sop_changes, trace.sop.in_order
        elif isinstance(answer, int) and self.replaced_changes is not None and trace.replaced is not None:
            changes, probability = self.replaced_changes[:, answer], trace.replaced[answer]
        if changes is None:
            raise InputError(f"This sweep has no answer {answer!r:.40}.")
        # The probabilities of the two answers add up to 1: one gains what the other loses.
        return -changes if probability >= 0.5 else changes


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
    if classifier_settings(bert) is None and "replaced" not in bert.heads:
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
        shifts[layer] = (
            np.abs(np.asarray(after[0]) - np.asarray(before)).sum(axis=-1, dtype=np.float64).mean(axis=-1) / 2
        )
    return x, shifts if attention_shifts else None


def _layer_without(hooked, layer, x, trace, ablations, maps=False):
    """The hidden state [B, T, H] after a layer with input `x`; with `maps` also the attention maps [B, N, T, T]."""
    heads = np.zeros((len(ablations), hooked.config.num_attention_heads, 1, 1), bool)
    for row, ablation in enumerate(ablations):
        heads[row, [head for head_layer, head in ablation.heads if head_layer == layer]] = True
    feed_forward = np.array([layer in ablation.feed_forward for ablation in ablations])[:, None, None]
    off = np.array([layer in ablation.layers for ablation in ablations])[:, None, None]
    replace = {
        "z": (heads, np.zeros((1, 1, 1, 1), np.float32)),
        "mlp_out": (feed_forward, np.zeros((1, 1, 1), np.float32)),
        "resid_post": (off, hooked.unchanged(layer, x)),
    }
    replace = {point: pair for point, pair in replace.items() if pair[0].any()}
    points = ("resid_post", "pattern") if maps else ("resid_post",)
    values = hooked.values(layer, x, points, _bias(layer, trace, ablations), replace)
    return (values["resid_post"], values["pattern"]) if maps else values["resid_post"]


def _bias(layer, trace, ablations):
    """The attention bias [B, 1, T, T] of B ablations in a layer; None if none of them blocks attention there."""

    def applies(ablation):
        return ablation.attention_layers is None or layer in ablation.attention_layers

    if not any((ablation.tokens or ablation.links) and applies(ablation) for ablation in ablations):
        return None
    return np.concatenate(
        [blocked(a.tokens, trace.length, a.links) if applies(a) else blocked((), trace.length) for a in ablations]
    )


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
    if classifier_settings(bert):
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
