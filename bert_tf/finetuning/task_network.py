"""A BERT encoder with a task's head: the model that is trained, over the very layers of a `BertModel`.

B batch, T tokens, H hidden, C choices.
"""

import keras

from bert_tf.layers.common import register
from bert_tf.models import build_encoder, named_variables, view

_INPUTS = ("token_ids", "segment_ids", "padding_mask")


@register
class ChoicesApart(keras.layers.Layer):
    """[B, C, T] -> [B * C, T]. A layer, as the shape is known only when it runs."""

    def call(self, inputs):
        return keras.ops.reshape(inputs, (-1, keras.ops.shape(inputs)[-1]))

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((None, inputs.shape[-1]), dtype=inputs.dtype)


@register
class ChoicesTogether(keras.layers.Layer):
    """[B * C], and the inputs [B, C, T] it came from -> [B, C]."""

    def call(self, values, inputs):
        return keras.ops.reshape(values, keras.ops.shape(inputs)[:2])

    def compute_output_spec(self, values, inputs):
        return keras.KerasTensor(inputs.shape[:2], dtype=values.dtype)


@register
class TaskNetwork(keras.Model):
    """A functional model; made by `build_network` or `network_over`.

    Attributes:
        bert: the `BertModel` whose layers it has. head: the layer on top.
        bert_config, bert_heads, bert_layers: as `BertModel`'s, so that freezing and learning rates by layer
            work.
    """

    def __init__(self, bert, head, needs_pooler, several=False, **kwargs):
        outputs = ("sequence_output", *(("pooled_output",) if needs_pooler else ()))
        encoder = view(bert, outputs, name="encoder")
        shape = (None, None) if several else (None,)
        inputs = {name: keras.Input(shape, dtype="int32", name=name) for name in _INPUTS}
        flat = {
            name: ChoicesApart(name=f"{name}_apart")(tensor) if several else tensor for name, tensor in inputs.items()
        }
        found = encoder(flat)
        results = head(found["sequence_output"], found.get("pooled_output"), flat["padding_mask"])
        if several:
            results = {
                name: ChoicesTogether(name=f"{name}_together")(tensor, inputs["token_ids"])
                for name, tensor in results.items()
            }
        super().__init__(inputs=inputs, outputs=results, **kwargs)
        self.bert_config, self.bert_heads = bert.bert_config, bert.bert_heads
        self._parts = lambda: (bert, head)

    @property
    def bert(self):
        return self._parts()[0]

    @property
    def head(self):
        return self._parts()[1]

    @property
    def bert_layers(self):
        return self.bert.bert_layers

    def named_variables(self):
        """Every variable, the head's too, under Hugging Face's name."""
        return {**named_variables(self.bert), **self.head.named_variables()}


def network_over(bert, family, settings):
    """A task's network over a `BertModel`'s layers, with a fresh head."""
    head = family.head(settings, bert.bert_config)
    return TaskNetwork(bert, head, family.needs_pooler(settings), family.several, name=family.task)


def build_network(config, family, settings, dtype=None):
    """A fresh network with random weights.

    Args:
        config: `BertConfig`. family: a `Family`. settings: `TaskSettings`. dtype: Keras dtype or policy.
    """
    outputs = ("sequence_output", *(("pooled_output",) if family.needs_pooler(settings) else ()))
    return network_over(build_encoder(config, outputs, dtype=dtype), family, settings)
