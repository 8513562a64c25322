"""The head of extractive question answering (Devlin et al. 2019, section 4.2)."""

import keras

from bert_tf.layers.common import initializer, register


@register
class SpanHead(keras.layers.Layer):
    """A start and an end score of each token: its hidden state times a start and an end vector.

    Args:
        hidden_size: H. stddev: of the initialiser.

    Call arguments: sequence [B, T, H]; pooled and padding_mask are not used.

    Returns: dict of start_logits and end_logits, float32 [B, T].
    """

    def __init__(self, hidden_size, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"hidden_size": hidden_size, "stddev": stddev}
        self.dense = keras.layers.Dense(
            2, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="dense"
        )

    def build(self, *_):
        self.dense.build((None, None, self.settings["hidden_size"]))

    def call(self, sequence, pooled=None, padding_mask=None, training=False):
        scores = keras.ops.cast(self.dense(sequence), "float32")
        return {"start_logits": scores[..., 0], "end_logits": scores[..., 1]}

    def compute_output_spec(self, sequence, pooled=None, padding_mask=None, training=False):
        return {name: keras.KerasTensor(sequence.shape[:2], dtype="float32") for name in ("start_logits", "end_logits")}

    def named_variables(self):
        """Hugging Face's name -> variable."""
        return {"qa_outputs.weight": self.dense.kernel, "qa_outputs.bias": self.dense.bias}

    def get_config(self):
        return {**super().get_config(), **self.settings}
