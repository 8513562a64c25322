"""The head of multiple choice (Devlin et al. 2019, section 4.4)."""

import keras

from bert_tf.layers.common import initializer, register


@register
class ChoiceHead(keras.layers.Layer):
    """One score of each choice: dropout and a linear map of its pooled output.

    Args:
        hidden_size: H. dropout: rate. stddev: of the initialiser.

    Call arguments: pooled [B, H]; sequence and padding_mask are not used.

    Returns: dict of logits, float32 [B].
    """

    def __init__(self, hidden_size, dropout=0.1, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"hidden_size": hidden_size, "dropout": dropout, "stddev": stddev}
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(1, kernel_initializer=initializer(stddev), dtype=self.dtype_policy,
                                        name="dense")

    def build(self, *_):
        self.dense.build((None, self.settings["hidden_size"]))

    def call(self, sequence, pooled, padding_mask=None, training=False):
        scores = self.dense(self.dropout(pooled, training=training))
        return {"logits": keras.ops.cast(scores, "float32")[..., 0]}

    def compute_output_spec(self, sequence, pooled, padding_mask=None, training=False):
        return {"logits": keras.KerasTensor(pooled.shape[:1], dtype="float32")}

    def named_variables(self):
        """Hugging Face's name -> variable."""
        return {"classifier.weight": self.dense.kernel, "classifier.bias": self.dense.bias}

    def get_config(self):
        return {**super().get_config(), **self.settings}
