"""The losses of sentence similarity; the protocol is that of `pretraining.objectives.masked_lm`.

Shapes: B batch, H hidden size. Rows that fill up a batch have the weight 0.
"""

from typing import Any

import keras

from bert_tf.layers.classifier import unit_vectors
from bert_tf.model_outputs import INPUTS

_HIDDEN = -1e9


class _PairLoss:
    model_inputs = INPUTS

    def counts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The sum of the weights: {"weights": float32 scalar}."""
        return {"weights": keras.ops.sum(batch["weights"])}

    def _total(self, batch, counts):
        return keras.ops.maximum((counts or self.counts(batch))["weights"], 1e-9)

    def _units(self, outputs):
        """The unit vectors [B, H] of the first and of the second texts."""
        units = unit_vectors(outputs["vectors"])
        return units[:, 0], units[:, 1]


class ContrastiveLoss(_PairLoss):
    """Cross-entropy of each text's partner among the second texts of the batch (Henderson et al. 2017, section 4.2;
    "MultipleNegativesRankingLoss" of sentence-transformers).

    A second text that is no negative is left out: one equal to the partner, to the first text itself, or to another
    partner of the same first text.

    Args:
        scale: float. The factor of the cosines; its inverse is the temperature.

    Call arguments:
        outputs: {"vectors": float32 [B, 2, H]}.
        batch: dict with `weights` float32 [B], and `first_texts` and `second_texts` int32 [B], a number for each text,
            equal where two texts are equal.
        counts: as in `pretraining.objectives.masked_lm`.

    Returns: dict of scalars: loss and accuracy.
    """

    def __init__(self, scale: float = 20.0) -> None:
        self.scale = scale

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        ops = keras.ops
        first, second = self._units(outputs)
        weights, total = batch["weights"], self._total(batch, counts)
        # A row that fills up the batch is nobody's partner.
        logits = self.scale * ops.matmul(first, ops.transpose(second)) + _HIDDEN * (1.0 - weights)[None]
        partners = ops.arange(ops.shape(logits)[0], dtype="int32")
        first_texts, second_texts = batch["first_texts"], batch["second_texts"]
        # [B, B], also on the diagonal, where the partner is.
        related = ops.equal(second_texts[:, None], second_texts[None])
        related = ops.logical_or(related, ops.equal(first_texts[:, None], first_texts[None]))
        related = ops.logical_or(related, ops.equal(first_texts[:, None], second_texts[None]))
        hidden = ops.logical_and(related, ops.not_equal(partners[:, None], partners[None]))
        logits = logits + _HIDDEN * ops.cast(hidden, "float32")
        losses = ops.sparse_categorical_crossentropy(partners, logits, from_logits=True)
        hits = ops.cast(ops.equal(ops.cast(ops.argmax(logits, -1), "int32"), partners), "float32")
        return {"loss": ops.sum(losses * weights) / total, "accuracy": ops.sum(hits * weights) / total}


class CosineLoss(_PairLoss):
    """Squared difference of a pair's cosine and its score (Reimers & Gurevych 2019, section 3).

    Call arguments:
        outputs: {"vectors": float32 [B, 2, H]}.
        batch: dict with `targets` float32 [B] from 0 to 1, and `weights` float32 [B].
        counts: as in `pretraining.objectives.masked_lm`.

    Returns: {"loss": scalar}.
    """

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        ops = keras.ops
        first, second = self._units(outputs)
        losses = ops.square(ops.sum(first * second, axis=-1) - batch["targets"])
        return {"loss": ops.sum(losses * batch["weights"]) / self._total(batch, counts)}
