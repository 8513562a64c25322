"""The head of multiple choice (Devlin et al. 2019, section 4.4)."""

import keras

from bert_tf.layers.common import initializer, named_dense, register
from bert_tf.layers.pooler import Pooler


@register
class ChoiceHead(keras.layers.Layer):
    """One score of each choice: dropout and a linear map of its pooled output.

    Args:
        hidden_size: H. dropout: rate. stddev: of the initialiser. hidden_act, names: as in `SentenceHead`.

    Call arguments: sequence [B, T, H], for a layer of its own on the first token; pooled [B, H], for none;
        padding_mask is not used.

    Returns: dict of logits, float32 [B].
    """

    def __init__(self, hidden_size, dropout=0.1, stddev=0.02, hidden_act=None, names=("", "classifier"), **kwargs):
        super().__init__(**kwargs)
        self.settings = {
            "hidden_size": hidden_size,
            "dropout": dropout,
            "stddev": stddev,
            "hidden_act": hidden_act,
            "names": tuple(names),
        }
        self.first = None
        if hidden_act:
            self.first = Pooler(hidden_size, stddev, hidden_act, dtype=self.dtype_policy, name="first")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            1, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="dense"
        )

    def build(self, *_):
        if self.first is not None:
            self.first.build((None, None, self.settings["hidden_size"]))
        self.dense.build((None, self.settings["hidden_size"]))

    def call(self, sequence, pooled, padding_mask=None, training=False):
        if self.first is not None:
            pooled = self.first(sequence)
        scores = self.dense(self.dropout(pooled, training=training))
        return {"logits": keras.ops.cast(scores, "float32")[..., 0]}

    def compute_output_spec(self, sequence, pooled, padding_mask=None, training=False):
        return {"logits": keras.KerasTensor(sequence.shape[:1], dtype="float32")}

    def named_variables(self):
        """Hugging Face's name -> variable."""
        first, last = self.settings["names"]
        found = named_dense(last, self.dense)
        return found if self.first is None else found | named_dense(first, self.first.dense)

    def get_config(self):
        return {**super().get_config(), **self.settings}
