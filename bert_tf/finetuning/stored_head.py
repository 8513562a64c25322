"""The head of a fine-tuned model in NumPy, over the tensors of its folder: predictions need no Keras model.

B batch, T tokens, H hidden size, K outputs. The formulas are in `tasks.head_formulas`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.finetuning.tasks.head_formulas import Tensors, first_token, predicted, sentence_vector

if TYPE_CHECKING:
    from bert_tf.checkpoints.stored_model import StoredModel
    from bert_tf.finetuning.task_network import TaskNetwork
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.task import Task


class StoredNetwork:
    """The weights of a fine-tuned model. Its Keras network is built when it is first asked for.

    Args:
        stored: `StoredModel`. The encoder.
        tensors: dict of name -> float32 array. The tensors of the head.
        task_type: `Task`. The task.
        settings: `TaskSettings`. Its settings.

    Attributes:
        stored: `StoredModel`. The encoder.
        tensors: dict of name -> float32 array. The tensors of the head.
    """

    def __init__(self, stored: StoredModel, tensors: Tensors, task_type: Task, settings: TaskSettings) -> None:
        self.stored, self.tensors, self._task_type, self._settings = stored, tensors, task_type, settings
        self._first_layer = task_type.first_layer(settings, stored.bert_config)
        self._network: TaskNetwork | None = None
        self._lock = threading.Lock()

    def outputs(
        self, sequence: np.ndarray, pooled: np.ndarray | None, padding_mask: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the outputs of the head for the encoder's outputs; see `Task.head_outputs`."""
        settings, config = self._settings, self.stored.bert_config
        if self._first_layer:
            pooled = first_token(self.tensors, self._first_layer, sequence)
        if self._task_type.prediction(config):
            if settings.task == "classify":
                pooled = sentence_vector(settings.pooling, self.tensors, sequence, sequence[:, 0], padding_mask)
                pooled, settings = (
                    predicted(self.tensors, pooled, config.layer_norm_eps),
                    settings.replace(pooling="cls"),
                )
            else:
                sequence = predicted(self.tensors, sequence, config.layer_norm_eps)
                pooled = sequence[:, 0]
        return self._task_type.head_outputs(self.tensors, settings, self._last_layer(), sequence, pooled, padding_mask)

    def sentence_vectors(self, sequence: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        """Return the vectors [B, H] of the task's pooling for hidden states [B, T, H]; not for "cls"."""
        return sentence_vector(self._settings.pooling, self.tensors, sequence, None, padding_mask)

    def drop_network(self) -> None:
        """Drop the Keras network, as `StoredModel.drop_model` does the model."""
        self._network = None

    @property
    def network(self) -> TaskNetwork:
        """The Keras network, built once."""
        from bert_tf.checkpoints.stored_model import outside_of_graphs
        from bert_tf.finetuning.task_folder import assign_head
        from bert_tf.finetuning.task_network import network_over

        model = self.stored.model
        with self._lock:
            network = self._network
            if network is None:
                with outside_of_graphs():
                    network = self._network = network_over(model, self._task_type, self._settings)
                    assign_head(network, self.tensors)
            return network

    def _last_layer(self):
        return self._first_layer["names"][1] if self._first_layer else "classifier"
