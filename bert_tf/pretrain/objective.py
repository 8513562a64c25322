"""The pre-training objective: masked language model plus next sentence (Devlin et al. 2019, section 3.1)."""

import keras


class MaskedLMAndNextSentence:
    """Mean cross-entropy over the masked positions, plus that of the next-sentence label.

    Call arguments:
        outputs: dict with mlm_logits [B, P, V] and nsp_logits [B, 2].
        batch: dict with mask_labels [B, P], mask_weights [B, P], nsp_labels [B].

    Returns: dict of scalars: loss, mlm_loss, nsp_loss, mlm_accuracy, nsp_accuracy.
    """

    model_inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")

    def __call__(self, outputs, batch):
        ops = keras.ops
        logits, labels, weights = outputs["mlm_logits"], batch["mask_labels"], batch["mask_weights"]
        real = ops.maximum(ops.sum(weights), 1.0)
        losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        mlm_loss = ops.sum(losses * weights) / real
        hits = ops.cast(ops.equal(ops.argmax(logits, -1), ops.cast(labels, "int32")), "float32")
        nsp_logits, nsp_labels = outputs["nsp_logits"], batch["nsp_labels"]
        nsp_loss = ops.mean(ops.sparse_categorical_crossentropy(nsp_labels, nsp_logits, from_logits=True))
        nsp_hits = ops.cast(ops.equal(ops.argmax(nsp_logits, -1), ops.cast(nsp_labels, "int32")), "float32")
        return {"loss": mlm_loss + nsp_loss, "mlm_loss": mlm_loss, "nsp_loss": nsp_loss,
                "mlm_accuracy": ops.sum(hits * weights) / real, "nsp_accuracy": ops.mean(nsp_hits)}
