"""The losses of token classification, question answering and multiple choice.

The protocol is that of `pretraining.objectives.masked_lm`. Each loss is a mean over the targets; rows that fill up a
batch have the weight 0.

Shapes: B batch, T tokens, K labels, C choices.
"""

from typing import Any

import keras

from bert_tf.model_outputs import INPUTS

_HIDDEN = -30000.0


class TokenCrossEntropy:
    """Cross-entropy of each labelled token.

    Call arguments:
        outputs: dict with logits [B, T, K].
        batch: dict with labels int32 [B, T], label_weights [B, T] (0 for tokens without a label) and weights [B].
        counts: as in `pretraining.objectives.masked_lm`.

    Returns: dict of scalars loss, accuracy.
    """

    model_inputs = INPUTS

    def counts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The sum of the label weights: {"labels": float32 scalar}."""
        return {"labels": keras.ops.sum(_label_weights(batch))}

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        ops = keras.ops
        total = ops.maximum((counts or self.counts(batch))["labels"], 1e-9)
        weights = _label_weights(batch)
        hits = _hits(outputs["logits"], batch["labels"])
        return {"loss": self._sum(outputs, batch, weights) / total, "accuracy": ops.sum(hits * weights) / total}

    def _sum(self, outputs, batch, weights):
        ops = keras.ops
        losses = ops.sparse_categorical_crossentropy(batch["labels"], outputs["logits"], from_logits=True)
        return ops.sum(losses * weights)


class CRFLoss(TokenCrossEntropy):
    """The negative log-likelihood of the label sequences in a CRF, divided by the number of labelled tokens.

    Call arguments:
        outputs: as `TokenCrossEntropy`, with transitions [B, K + 2, K].
        batch: as `TokenCrossEntropy`.
        counts: as `TokenCrossEntropy`.

    Returns: dict of scalars loss, accuracy.
    """

    def _sum(self, outputs, batch, weights):
        from bert_tf.layers.crf import crf_negative_log_likelihood

        losses = crf_negative_log_likelihood(
            outputs["logits"], outputs["transitions"][0], batch["labels"], batch["label_weights"] > 0
        )
        return keras.ops.sum(losses * batch["weights"])


class _MeanOfRows:
    """A loss that is a mean over the rows."""

    model_inputs = INPUTS

    def counts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The sum of the row weights: {"rows": float32 scalar}."""
        return {"rows": keras.ops.sum(batch["weights"])}


class SpanCrossEntropy(_MeanOfRows):
    """The mean of the cross-entropies of the first and the last token of the answer.

    Call arguments:
        outputs: dict with start_logits and end_logits [B, T].
        batch: dict with starts and ends int32 [B], padding_mask [B, T] and weights [B].
        counts: as in `pretraining.objectives.masked_lm`.

    Returns: dict of scalars loss, accuracy (both ends are right).
    """

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        ops = keras.ops
        total = ops.maximum((counts or self.counts(batch))["rows"], 1.0)
        bias = (1.0 - ops.cast(batch["padding_mask"], "float32")) * _HIDDEN
        losses, hits = 0.0, 1.0
        for side in ("start", "end"):
            logits, positions = outputs[f"{side}_logits"] + bias, batch[f"{side}s"]
            losses += 0.5 * ops.sparse_categorical_crossentropy(positions, logits, from_logits=True)
            hits *= _hits(logits, positions)
        weights = batch["weights"]
        return {"loss": ops.sum(losses * weights) / total, "accuracy": ops.sum(hits * weights) / total}


class ChoiceCrossEntropy(_MeanOfRows):
    """Cross-entropy of the right choice.

    Call arguments:
        outputs: dict with logits [B, C].
        batch: dict with labels int32 [B] and weights [B].
        counts: as in `pretraining.objectives.masked_lm`.

    Returns: dict of scalars loss, accuracy.
    """

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        ops = keras.ops
        total = ops.maximum((counts or self.counts(batch))["rows"], 1.0)
        weights, labels, logits = batch["weights"], batch["labels"], outputs["logits"]
        losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        hits = _hits(logits, labels)
        return {"loss": ops.sum(losses * weights) / total, "accuracy": ops.sum(hits * weights) / total}


def _label_weights(batch):
    return batch["label_weights"] * keras.ops.expand_dims(batch["weights"], -1)


def _hits(logits, labels):
    ops = keras.ops
    return ops.cast(ops.equal(ops.argmax(logits, -1), ops.cast(labels, "int32")), "float32")
