"""What tagging, answering and choosing minimise; the protocol is that of `pretraining.objectives.masked_lm`.

B batch, T tokens, K labels, C choices. Each is a mean over what is counted; a row's weight is 0 where it only
fills up a batch.
"""

import keras

_HIDDEN = -30000.0


class TokenCrossEntropy:
    """Cross-entropy of each labelled token.

    Call arguments: outputs with logits [B, T, K]; batch with labels int32 [B, T], label_weights [B, T] (0 for
        tokens without a label), weights [B].

    Returns: dict of scalars loss, accuracy.
    """

    model_inputs = ("token_ids", "segment_ids", "padding_mask")

    def counts(self, batch):
        """Dict of float32 scalars: "labels", their number by weight."""
        return {"labels": keras.ops.sum(_label_weights(batch))}

    def __call__(self, outputs, batch, counts=None):
        ops = keras.ops
        total = ops.maximum((counts or self.counts(batch))["labels"], 1.0)
        weights = _label_weights(batch)
        hits = _hits(outputs["logits"], batch["labels"])
        return {"loss": self._sum(outputs, batch, weights) / total, "accuracy": ops.sum(hits * weights) / total}

    def _sum(self, outputs, batch, weights):
        ops = keras.ops
        losses = ops.sparse_categorical_crossentropy(batch["labels"], outputs["logits"], from_logits=True)
        return ops.sum(losses * weights)


class CRFLoss(TokenCrossEntropy):
    """Minus the log-likelihood of the label sequences in a CRF, by labelled token; else as `TokenCrossEntropy`.

    Call arguments: outputs with transitions [B, K + 2, K] too.
    """

    def _sum(self, outputs, batch, weights):
        from bert_tf.layers.crf import crf_negative_log_likelihood

        losses = crf_negative_log_likelihood(
            outputs["logits"], outputs["transitions"][0], batch["labels"], batch["label_weights"] > 0
        )
        return keras.ops.sum(losses * batch["weights"])


class SpanCrossEntropy:
    """The mean of the cross-entropies of the answer's first and last token.

    Call arguments: outputs with start_logits and end_logits [B, T]; batch with starts and ends int32 [B],
        padding_mask [B, T] and weights [B].

    Returns: dict of scalars loss, accuracy (both ends right).
    """

    model_inputs = ("token_ids", "segment_ids", "padding_mask")

    def counts(self, batch):
        """Dict of float32 scalars: "rows", their number by weight."""
        return {"rows": keras.ops.sum(batch["weights"])}

    def __call__(self, outputs, batch, counts=None):
        ops = keras.ops
        total = ops.maximum((counts or self.counts(batch))["rows"], 1.0)
        bias = (1.0 - ops.cast(batch["padding_mask"], "float32")) * _HIDDEN
        losses, right = 0.0, 1.0
        for side in ("start", "end"):
            logits, places = outputs[f"{side}_logits"] + bias, batch[f"{side}s"]
            losses += 0.5 * ops.sparse_categorical_crossentropy(places, logits, from_logits=True)
            right *= _hits(logits, places)
        weights = batch["weights"]
        return {"loss": ops.sum(losses * weights) / total, "accuracy": ops.sum(right * weights) / total}


class ChoiceCrossEntropy:
    """Cross-entropy of the right choice.

    Call arguments: outputs with logits [B, C]; batch with labels int32 [B], weights [B].

    Returns: dict of scalars loss, accuracy.
    """

    model_inputs = ("token_ids", "segment_ids", "padding_mask")

    def counts(self, batch):
        """Dict of float32 scalars: "rows", their number by weight."""
        return {"rows": keras.ops.sum(batch["weights"])}

    def __call__(self, outputs, batch, counts=None):
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
