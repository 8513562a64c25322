"""The pre-training objective: masked language model plus next sentence (Devlin et al. 2019, section 3.1)."""

import keras


class MaskedLMAndNextSentence:
    """Mean cross-entropy over the masked positions, plus that of the next-sentence label.

    Call arguments:
        outputs: dict with mlm_logits [B, P, V] and nsp_logits [B, 2].
        batch: dict with mask_labels [B, P], mask_weights [B, P], nsp_labels [B].
        counts: what the sums are divided by, from `counts`. Those of a larger batch that this one is a part
            of give this part's share, and the shares of all parts add up to the values of the whole.
            Default: this batch's own.

    Returns: dict of scalars: loss, mlm_loss, nsp_loss, mlm_accuracy, nsp_accuracy.
    """

    model_inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")

    def counts(self, batch):
        """The numbers of targets: dict of float32 scalars, "masks" (real ones) and "pairs"."""
        ops = keras.ops
        return {"masks": ops.sum(ops.cast(batch["mask_weights"], "float32")),
                "pairs": ops.sum(ops.ones_like(batch["nsp_labels"], dtype="float32"))}

    def __call__(self, outputs, batch, counts=None):
        ops = keras.ops
        counts = counts or self.counts(batch)
        masks, pairs = (ops.maximum(counts[name], 1.0) for name in ("masks", "pairs"))
        logits, labels, weights = outputs["mlm_logits"], batch["mask_labels"], batch["mask_weights"]
        losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        mlm_loss = ops.sum(losses * weights) / masks
        hits = ops.cast(ops.equal(ops.argmax(logits, -1), ops.cast(labels, "int32")), "float32")
        nsp_logits, nsp_labels = outputs["nsp_logits"], batch["nsp_labels"]
        nsp_losses = ops.sparse_categorical_crossentropy(nsp_labels, nsp_logits, from_logits=True)
        nsp_loss = ops.sum(nsp_losses) / pairs
        nsp_hits = ops.cast(ops.equal(ops.argmax(nsp_logits, -1), ops.cast(nsp_labels, "int32")), "float32")
        return {"loss": mlm_loss + nsp_loss, "mlm_loss": mlm_loss, "nsp_loss": nsp_loss,
                "mlm_accuracy": ops.sum(hits * weights) / masks, "nsp_accuracy": ops.sum(nsp_hits) / pairs}
