"""What ablations are and what they change: the parts to switch off, and the records of the effects.

Dimension legend: A ablations, L layers, N heads, T tokens, P masks, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError
from bert_tf.inference.trace import NextSentence, SentenceOrder
from bert_tf.results import Result, frame, frame_text

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.trace import Trace


@dataclass(frozen=True)
class Ablation:
    """What to switch off; all numbers count from 0. Parts may be combined.

    In a layer with a causal or a local mask, `tokens` and `links` may block all that a token may attend to. The token
    then attends to nothing: its attention weights are 0, and these heads add nothing to it.

    Attributes:
        heads: tuple of (layer, head). These heads add nothing. The bias of the output projection, which belongs to no
            head, stays.
        layers: tuple of int. These layers return their input unchanged.
        feed_forward: tuple of int. The feed-forward blocks of these layers add nothing; their residual connection and
            normalisation stay.
        tokens: tuple of int. No token attends to these positions; the attention is spread over the others.
        links: tuple of (from, to). Pairs of positions: `from` does not attend to `to`.
        attention_layers: tuple of int. The layers in which `tokens` and `links` apply; None for all.

    Raises:
        InputError: a part is not a sequence of whole numbers or, for heads and links, of pairs of them.

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

    def __post_init__(self) -> None:
        for name, parts in list(vars(self).items()):
            if name == "attention_layers" and parts is None:
                continue
            in_pairs = name in ("heads", "links")
            try:
                numbers = tuple((index(a), index(b)) for a, b in parts) if in_pairs else tuple(map(index, parts))
            except (TypeError, ValueError):  # not iterable, not whole, not two
                example = "((3, 11),)" if in_pairs else "(3, 11)"
                sentence = f"{name} of an ablation must be numbers as in {name}={example}, not {parts!r:.60}."
                raise InputError(sentence) from None
            object.__setattr__(self, name, numbers)

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
            the total variation distance of the two maps, averaged over the query tokens; 1 for a token with nothing
            left to attend to. None if not asked for.
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
