"""A task's head on a sentence: its vector out of the hidden states, dropout, one dense layer.

B batch, T tokens, H hidden, K outputs.

Sources: Devlin et al. 2019, section 4.1; Reimers & Gurevych 2019 (mean and maximum over the tokens); Lin et
al. 2017 (weights learned by attention).
"""

import keras

from bert_tf.layers.attention import MASKED_SCORE
from bert_tf.layers.common import initializer, named_dense, register
from bert_tf.layers.pooler import Pooler


@register
class SentenceVector(keras.layers.Layer):
    """One vector of a sequence.

    Args:
        kind: "cls" (the pooler's output as it is), "mean" or "max" over the real tokens, or "attention": the
            mean with weights out of a learned score a token.
        stddev: of the initialiser.

    Call arguments: sequence [B, T, H], pooled [B, H] (for "cls", else None), padding_mask [B, T].
    Returns: [B, H].
    """

    def __init__(self, kind, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"kind": kind, "stddev": stddev}
        self.scores = (
            keras.layers.Dense(1, kernel_initializer=initializer(stddev), dtype="float32", name="scores")
            if kind == "attention"
            else None
        )

    def build(self, sequence_shape, *_):
        if self.scores is not None:
            self.scores.build(sequence_shape)

    def call(self, sequence, pooled, padding_mask):
        ops, kind = keras.ops, self.settings["kind"]
        if kind == "cls":
            return ops.cast(pooled, "float32")
        sequence = ops.cast(sequence, "float32")
        real = ops.cast(ops.expand_dims(padding_mask, -1), "float32")  # [B, T, 1]
        if kind == "max":
            return ops.max(sequence + (1.0 - real) * MASKED_SCORE, axis=1)
        if kind == "attention":
            weights = ops.softmax(self.scores(sequence) + (1.0 - real) * MASKED_SCORE, axis=1)
            return ops.sum(sequence * weights, axis=1)
        return ops.sum(sequence * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)

    def compute_output_spec(self, sequence, pooled, padding_mask):
        return keras.KerasTensor((sequence.shape[0], sequence.shape[-1]), dtype="float32")

    def get_config(self):
        return {**super().get_config(), **self.settings}


@register
class SentenceHead(keras.layers.Layer):
    """Logits of a sentence or pair.

    Args:
        outputs: K. pooling: `SentenceVector`'s kind. dropout: rate on the vector. stddev: of the initialiser.
        hidden_size: H, needed with `hidden_act`: the activation of a layer of its own on the first token, whose output
            stands for `pooled`; None for none. names: Hugging Face's, of that layer and the last one.

    Call arguments: as `SentenceVector`. Returns: {"logits": float32 [B, K]}.
    """

    def __init__(
        self,
        outputs,
        pooling="cls",
        dropout=0.1,
        stddev=0.02,
        hidden_size=None,
        hidden_act=None,
        names=("", "classifier"),
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.settings = {
            "outputs": outputs,
            "pooling": pooling,
            "dropout": dropout,
            "stddev": stddev,
            "hidden_size": hidden_size,
            "hidden_act": hidden_act,
            "names": tuple(names),
        }
        self.first = Pooler(hidden_size, stddev, hidden_act, dtype="float32", name="first") if hidden_act else None
        self.vector = SentenceVector(pooling, stddev, name="vector")
        self.dropout = keras.layers.Dropout(dropout, name="dropout")
        # In float32 whatever the encoder computes in: a few thousand products, and the loss' last digits.
        self.classifier = keras.layers.Dense(
            outputs, kernel_initializer=initializer(stddev), dtype="float32", name="classifier"
        )

    def build(self, sequence_shape, *_):
        if self.first is not None:
            self.first.build(sequence_shape)
        self.vector.build(sequence_shape)
        self.classifier.build((None, sequence_shape[-1]))

    def call(self, sequence, pooled, padding_mask, training=False):
        if self.first is not None:
            pooled = self.first(sequence)
        vector = self.dropout(self.vector(sequence, pooled, padding_mask), training=training)
        return {"logits": self.classifier(vector)}

    def compute_output_spec(self, sequence, pooled, padding_mask, training=False):
        return {"logits": keras.KerasTensor((sequence.shape[0], self.settings["outputs"]), dtype="float32")}

    def named_variables(self):
        """Name -> variable; `classifier` is what Hugging Face's BertForSequenceClassification calls it."""
        first, last = self.settings["names"]
        found = named_dense(last, self.classifier)
        if self.first is not None:
            found |= named_dense(first, self.first.dense)
        if self.vector.scores is not None:
            found |= named_dense("attention_pooling", self.vector.scores)
        return found

    def get_config(self):
        return {**super().get_config(), **self.settings}
