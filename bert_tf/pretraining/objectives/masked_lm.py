"""The pre-training objectives: masked words, alone or with what the second segment is to the first.

Causal language modelling ("clm") is `MaskedLM` too: the same mean over the predicted places, which are all tokens of
the text, in a model that cannot see a place it predicts.
"""

import keras


class MaskedLM:
    """Mean cross-entropy over the masked positions (Devlin et al. 2019, section 3.1).

    Call arguments:
        outputs: dict with mlm_logits [B, P, V].
        batch: dict with mask_labels [B, P], mask_weights [B, P].
        counts: what the sums are divided by, from `counts`. Those of a larger batch that this one is a part
            of give this part's share, and the shares of all parts add up to the values of the whole.
            Default: this batch's own.

    Returns: dict of scalars: loss, mlm_loss, mlm_accuracy.
    """

    model_inputs = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    #: What the model must give, and the heads it needs for that.
    model_outputs, heads = ("mlm_logits",), ("mlm",)

    def counts(self, batch):
        """The numbers of targets: dict of float32 scalars, "masks" (real ones)."""
        return {"masks": keras.ops.sum(keras.ops.cast(batch["mask_weights"], "float32"))}

    def __call__(self, outputs, batch, counts=None):
        masks = keras.ops.maximum((counts or self.counts(batch))["masks"], 1.0)
        losses, hits = _scored(outputs["mlm_logits"], batch["mask_labels"])
        weights = batch["mask_weights"]
        mlm_loss = keras.ops.sum(losses * weights) / masks
        return {"loss": mlm_loss, "mlm_loss": mlm_loss, "mlm_accuracy": keras.ops.sum(hits * weights) / masks}


class MaskedLMAndNextSentence(MaskedLM):
    """`MaskedLM`, plus the mean cross-entropy of the next-sentence label (Devlin et al. 2019, section 3.1).

    Call arguments as `MaskedLM`, and: outputs: nsp_logits [B, 2]; batch: nsp_labels [B]; counts: "pairs".

    Returns: dict of scalars: loss (their sum), mlm_loss, mlm_accuracy, nsp_loss, nsp_accuracy.
    """

    model_outputs, heads = ("mlm_logits", "nsp_logits"), ("pooler", "mlm", "nsp")
    #: The second task's head, and what its figures are called.
    name = "nsp"

    def counts(self, batch):
        """The numbers of targets: dict of float32 scalars, "masks" (real ones) and "pairs"."""
        ops = keras.ops
        return {**super().counts(batch), "pairs": ops.sum(ops.ones_like(batch["nsp_labels"], dtype="float32"))}

    def __call__(self, outputs, batch, counts=None):
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
    """As `MaskedLMAndNextSentence`, its label whether the two segments are swapped (Lan et al. 2020, section 3.1).

    Call arguments as there, with sop_logits [B, 2] for nsp_logits; the labels are the batch's nsp_labels.

    Returns: dict of scalars: loss, mlm_loss, mlm_accuracy, sop_loss, sop_accuracy.
    """

    model_outputs, heads = ("mlm_logits", "sop_logits"), ("pooler", "mlm", "sop")
    name = "sop"


def make_objective(name):
    """The objective of a name out of `instances.OBJECTIVES`."""
    return {"mlm+nsp": MaskedLMAndNextSentence, "mlm": MaskedLM, "sop": MaskedLMAndSentenceOrder, "clm": MaskedLM}[
        name
    ]()


def _scored(logits, labels):
    """(cross-entropy, 1.0 where the likeliest is the label): float tensors of the shape of `labels`."""
    ops = keras.ops
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    return losses, ops.cast(ops.equal(ops.argmax(logits, -1), ops.cast(labels, "int32")), "float32")
