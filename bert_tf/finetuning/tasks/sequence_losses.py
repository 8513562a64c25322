"""The loss of sequence classification; the protocol is that of `pretraining.objectives.masked_lm`.

Shapes: B batch, K labels. Rows that fill up a batch have the weight 0.
"""

from typing import Any

import keras

from bert_tf.model_outputs import INPUTS


class SequenceLoss:
    """Cross-entropy, binary cross-entropy of each label, or squared error, as a weighted mean over the rows.

    Args:
        regression: bool. Whether the target is a number.
        multi_label: bool. Whether the targets are K zeros and ones.

    Call arguments:
        outputs: {"logits": float32 [B, K]}.
        batch: dict with `targets` (int32 [B], float32 [B] or [B, K]), `weights` float32 [B] and, with windows,
            `mean_weights` float32 [B].
        counts: as in `pretraining.objectives.masked_lm`.

    Returns: dict of scalars: loss and, without `regression`, accuracy.
    """

    model_inputs = INPUTS

    def __init__(self, regression: bool = False, multi_label: bool = False) -> None:
        self.regression, self.multi_label = regression, multi_label

    def counts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The divisors of the loss and of the accuracy: {"mean_weights", "weights"}, float32 scalars.

        "weights" is the sum of the weights. With windows the loss is divided by the sum of what they are on average,
        "mean_weights": sorted by length, the windows of long texts fill whole batches, and a sum of their own weights
        would make a text of n windows count n times. The accuracy, a share of the batch, keeps the sum of its own.
        """
        weights = keras.ops.sum(batch["weights"])
        mean_weights = keras.ops.sum(batch["mean_weights"]) if "mean_weights" in batch else weights
        return {"mean_weights": mean_weights, "weights": weights}

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        ops = keras.ops
        counts = counts or self.counts(batch)
        total = ops.maximum(counts["mean_weights"], 1e-9)
        logits, targets, weights = outputs["logits"], batch["targets"], batch["weights"]
        if self.regression:
            return {"loss": ops.sum(ops.square(logits[:, 0] - targets) * weights) / total}
        if self.multi_label:
            # max(x, 0) - x z + log(1 + exp(-|x|)): finite for any logit.
            losses = ops.maximum(logits, 0.0) - logits * targets + ops.log1p(ops.exp(-ops.abs(logits)))
            losses = ops.mean(losses, axis=-1)
            hits = ops.mean(ops.cast(ops.equal(logits > 0, targets > 0.5), "float32"), axis=-1)
        else:
            losses = ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
            hits = ops.cast(ops.equal(ops.argmax(logits, -1), ops.cast(targets, "int32")), "float32")
        accuracy = ops.sum(hits * weights) / ops.maximum(counts["weights"], 1e-9)
        return {"loss": ops.sum(losses * weights) / total, "accuracy": accuracy}
