"""The head of token classification (Devlin et al. 2019, section 4: "fed into an output layer")."""

import keras

from bert_tf.layers.common import initializer, register
from bert_tf.layers.crf import LinearChainCRF


@register
class TaggingHead(keras.layers.Layer):
    """Dropout and a linear classifier on each token's hidden state, with a CRF over them if asked for.

    Args:
        labels: K. hidden_size: H. dropout: rate. stddev: of the initialiser. crf: bool.

    Call arguments: sequence [B, T, H]; pooled and padding_mask are not used.

    Returns: dict of logits [B, T, K]; with a CRF also its transitions [B, K + 2, K].
    """

    def __init__(self, labels, hidden_size, dropout=0.1, stddev=0.02, crf=False, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"labels": labels, "hidden_size": hidden_size, "dropout": dropout, "stddev": stddev, "crf": crf}
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            labels, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="dense"
        )
        self.crf = LinearChainCRF(labels, stddev, dtype=self.dtype_policy, name="crf") if crf else None

    def build(self, *_):
        self.dense.build((None, None, self.settings["hidden_size"]))
        if self.crf is not None:
            self.crf.build()

    def call(self, sequence, pooled=None, padding_mask=None, training=False):
        logits = keras.ops.cast(self.dense(self.dropout(sequence, training=training)), "float32")
        return {"logits": logits} if self.crf is None else self.crf(logits)

    def compute_output_spec(self, sequence, pooled=None, padding_mask=None, training=False):
        logits = keras.KerasTensor((*sequence.shape[:2], self.settings["labels"]), dtype="float32")
        return {"logits": logits} if self.crf is None else self.crf.compute_output_spec(logits)

    def named_variables(self):
        """Hugging Face's name -> variable; it knows no transitions."""
        found = {"classifier.weight": self.dense.kernel, "classifier.bias": self.dense.bias}
        return found if self.crf is None else {**found, "crf.transitions": self.crf.transitions}

    def get_config(self):
        return {**super().get_config(), **self.settings}
