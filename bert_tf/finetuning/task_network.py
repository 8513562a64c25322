"""The network of a task: a BERT encoder with the head of the task; it shares the layers of a `BertModel`.

Shapes: B batch, T tokens, H hidden, C choices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from bert_tf.layers.common import register
from bert_tf.model_outputs import INPUTS
from bert_tf.models import build_encoder, named_variables, view

if TYPE_CHECKING:
    from bert_tf.config import BertConfig
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.task import Task
    from bert_tf.models import BertModel


@register
class ChoicesApart(keras.layers.Layer):
    """Reshapes [B, C, T] to [B * C, T]. It is a layer because the shape is known only at run time."""

    def call(self, inputs: Any) -> Any:
        return keras.ops.reshape(inputs, (-1, keras.ops.shape(inputs)[-1]))

    def compute_output_spec(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        return keras.KerasTensor((None, inputs.shape[-1]), dtype=inputs.dtype)


@register
class ChoicesTogether(keras.layers.Layer):
    """Reshapes values [B * C, ...] to [B, C, ...]; the inputs [B, C, T] give the shape."""

    def call(self, values: Any, inputs: Any) -> Any:
        return keras.ops.reshape(values, (*keras.ops.shape(inputs)[:2], *values.shape[1:]))

    def compute_output_spec(self, values: keras.KerasTensor, inputs: keras.KerasTensor) -> keras.KerasTensor:
        return keras.KerasTensor((*inputs.shape[:2], *values.shape[1:]), dtype=values.dtype)


@register
class TaskNetwork(keras.Model):
    """A functional model of an encoder and a head; `build_network` and `network_over` make it.

    Args:
        bert: the `BertModel` whose layers are used.
        head: the Keras layer on top.
        needs_pooler: bool. Whether the head reads the output of the pooler.
        several: bool. Whether an input has several choices, [B, C, T].

    Attributes:
        bert: the `BertModel`.
        head: the layer on top.
        bert_config: as of `BertModel`.
        bert_heads: as of `BertModel`.
        bert_layers: as of `BertModel`, so that freezing and learning rates by layer work.
    """

    def __init__(
        self, bert: BertModel, head: keras.layers.Layer, needs_pooler: bool, several: bool = False, **kwargs: Any
    ):
        outputs = ("sequence_output", *(("pooled_output",) if needs_pooler else ()))
        encoder = view(bert, outputs, name="encoder")
        shape = (None, None) if several else (None,)
        inputs = {name: keras.Input(shape, dtype="int32", name=name) for name in INPUTS}
        flat = {
            name: ChoicesApart(name=f"{name}_apart")(tensor) if several else tensor for name, tensor in inputs.items()
        }
        encoded = encoder(flat)
        results = head(encoded["sequence_output"], encoded.get("pooled_output"), flat["padding_mask"])
        if several:
            results = {
                name: ChoicesTogether(name=f"{name}_together")(tensor, inputs["token_ids"])
                for name, tensor in results.items()
            }
        super().__init__(inputs=inputs, outputs=results, **kwargs)
        self.bert_config, self.bert_heads = bert.bert_config, bert.bert_heads
        self._parts = lambda: (bert, head)

    @property
    def bert(self) -> BertModel:
        return self._parts()[0]

    @property
    def head(self) -> keras.layers.Layer:
        return self._parts()[1]

    @property
    def bert_layers(self) -> Any:
        return self.bert.bert_layers

    def named_variables(self) -> dict[str, keras.Variable]:
        """All variables with the head's, as a dict Hugging Face name -> variable."""
        return {**named_variables(self.bert), **self.head.named_variables()}


def network_over(bert: BertModel, task_type: Task, settings: TaskSettings) -> TaskNetwork:
    """Makes a network over the layers of a `BertModel`, with a new head.

    Args:
        bert: `BertModel`.
        task_type: `Task`.
        settings: `TaskSettings`.

    Returns: `TaskNetwork`.
    """
    head = task_type.head(settings, bert.bert_config)
    return TaskNetwork(bert, head, task_type.needs_pooler(settings), task_type.several, name=task_type.task)


def build_network(config: BertConfig, task_type: Task, settings: TaskSettings, dtype: Any = None) -> TaskNetwork:
    """Makes a network with random weights.

    Args:
        config: `BertConfig`.
        task_type: `Task`.
        settings: `TaskSettings`.
        dtype: a Keras dtype or dtype policy; None for the default.

    Returns: `TaskNetwork`.
    """
    outputs = ("sequence_output", *(("pooled_output",) if task_type.needs_pooler(settings) else ()))
    return network_over(build_encoder(config, outputs, dtype=dtype), task_type, settings)
