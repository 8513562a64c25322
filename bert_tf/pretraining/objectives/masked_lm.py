"""The pre-training objectives: masked language modelling, alone or with next-sentence or sentence-order prediction.

Causal language modelling ("clm") uses `MaskedLM` too. There all tokens of the text are predicted positions, and the
model cannot see the token that it predicts.

Shapes: B batch, P predicted positions, V vocabulary.
"""

from typing import Any

import keras

from bert_tf.model_outputs import INPUTS


class MaskedLM:
    """Mean cross-entropy over the masked positions (Devlin et al. 2019, section 3.1).

    Call arguments:
        outputs: dict with mlm_logits [B, P, V].
        batch: dict with mask_labels [B, P], mask_weights [B, P].
        counts: dict of scalars that divide the sums, from `counts`; None for those of this batch. If this batch is a
            part of a larger one, pass the counts of the larger one: then the values of all parts add up to the
            values of the larger batch.

    Returns: dict of scalars: loss, mlm_loss, mlm_accuracy.
    """

    model_inputs = (*INPUTS, "mask_positions")
    #: The required outputs of the model, and the heads that compute them.
    model_outputs: tuple[str, ...] = ("mlm_logits",)
    heads: tuple[str, ...] = ("mlm",)

    def counts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The numbers of targets: dict of float32 scalars, "masks" (without padded positions)."""
        return {"masks": keras.ops.sum(keras.ops.cast(batch["mask_weights"], "float32"))}

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        masks = keras.ops.maximum((counts or self.counts(batch))["masks"], 1.0)
        losses, hits = _scored(outputs["mlm_logits"], batch["mask_labels"])
        weights = batch["mask_weights"]
        mlm_loss = keras.ops.sum(losses * weights) / masks
        return {"loss": mlm_loss, "mlm_loss": mlm_loss, "mlm_accuracy": keras.ops.sum(hits * weights) / masks}


class MaskedLMAndNextSentence(MaskedLM):
    """`MaskedLM`, plus the mean cross-entropy of the next-sentence label (Devlin et al. 2019, section 3.1).

    Call arguments:
        outputs: as `MaskedLM`, with nsp_logits [B, 2].
        batch: as `MaskedLM`, with nsp_labels [B].
        counts: as `MaskedLM`, with "pairs".

    Returns: dict of scalars: loss (mlm_loss plus nsp_loss), mlm_loss, mlm_accuracy, nsp_loss, nsp_accuracy.
    """

    model_outputs, heads = ("mlm_logits", "nsp_logits"), ("pooler", "mlm", "nsp")
    #: The head of the second task, and the prefix of its values.
    name = "nsp"

    def counts(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The numbers of targets: dict of float32 scalars, "masks" (without padded positions) and "pairs"."""
        ops = keras.ops
        return {**super().counts(batch), "pairs": ops.sum(ops.ones_like(batch["nsp_labels"], dtype="float32"))}

    def __call__(
        self, outputs: dict[str, Any], batch: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        counts = counts or self.counts(batch)
        values = super().__call__(outputs, batch, counts)
        pairs = keras.ops.maximum(counts["pairs"], 1.0)
        losses, hits = _scored(outputs[f"{self.name}_logits"], batch["nsp_labels"])
        loss = keras.ops.sum(losses) / pairs
        return {
            **values,
            "loss": values["mlm_loss"] + loss,
            f"{self.name}_loss": loss,
            f"{self.name}_accuracy": keras.ops.sum(hits) / pairs,
        }


class MaskedLMAndSentenceOrder(MaskedLMAndNextSentence):
    """`MaskedLM`, plus the mean cross-entropy of the sentence-order label (Lan et al. 2020, section 3.1).

    The label is 1 if the two segments are swapped.

    Call arguments:
        outputs: as `MaskedLM`, with sop_logits [B, 2].
        batch: as `MaskedLM`, with nsp_labels [B], the sentence-order labels.
        counts: as `MaskedLM`, with "pairs".

    Returns: dict of scalars: loss, mlm_loss, mlm_accuracy, sop_loss, sop_accuracy.
    """

    model_outputs, heads = ("mlm_logits", "sop_logits"), ("pooler", "mlm", "sop")
    name = "sop"


def make_objective(name: str) -> MaskedLM:
    """Makes the objective with a name of `packing.OBJECTIVES`."""
    return {"mlm+nsp": MaskedLMAndNextSentence, "mlm": MaskedLM, "sop": MaskedLMAndSentenceOrder, "clm": MaskedLM}[
        name
    ]()


def _scored(logits, labels):
    """(cross-entropy, 1.0 where the likeliest token is the label), two float tensors of the shape of `labels`."""
    ops = keras.ops
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    return losses, ops.cast(ops.equal(ops.argmax(logits, -1), ops.cast(labels, "int32")), "float32")
