"""The engine for Keras' other backends (torch, JAX): the Keras model is called as it is.

B batch, T tokens, P predicted positions, S states of each, V vocabulary.
"""

from typing import Any

import keras
import numpy as np

from bert_tf.models import BertModel, view


class KerasEngine:
    """Runs views of a `BertModel` on Keras' backend, without compiling them.

    Args:
        model: `BertModel`.
        precision: str. "float32"; the other precisions need another engine.
    """

    def __init__(self, model: BertModel, precision: str) -> None:
        if precision != "float32":
            raise ValueError(f"On Keras' {keras.backend.backend()} backend, models run in float32, not {precision}.")
        self._model = model

    @property
    def nbytes(self) -> int:
        """0: the engine uses the weights of the Keras model."""
        return 0

    def run(self, arrays: dict[str, np.ndarray], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Run one forward pass as `Runtime.run`, with checked arrays."""
        results = view(self._model, outputs)(arrays, training=False)
        return {name: _numpy(value) for name, value in results.items()}

    def read_mlm(self, states: np.ndarray, answers: np.ndarray, top_k: int) -> tuple[np.ndarray, ...]:
        """Run the MLM head as `Runtime.read_mlm`."""
        layers = self._model.bert_layers
        logits = _numpy(layers["mlm"].logits(states, layers["embeddings"].token_table)).astype(np.float32)
        ids = np.argsort(-logits, axis=-1, kind="stable")[..., :top_k].astype(np.int32)
        # Subtract the highest logit: nothing overflows, and the entropy is not a difference of large numbers.
        logits = logits - logits.max(axis=-1, keepdims=True)
        powers = np.exp(logits)
        total = powers.sum(axis=-1, keepdims=True)
        entropies = np.log(total[..., 0]) - (powers * logits).sum(axis=-1) / total[..., 0]
        chosen = np.where(answers < 0, ids[:, -1, 0], answers)[:, None, None]  # [P, 1, 1]
        answer_logits = np.take_along_axis(logits, np.broadcast_to(chosen, (*logits.shape[:2], 1)), axis=-1)
        ranks = 1 + (logits > answer_logits).sum(axis=-1, dtype=np.int32)
        shares = np.take_along_axis(powers, ids, axis=-1) / total
        return ids, shares, entropies, ranks, np.exp(answer_logits[..., 0]) / total[..., 0]


def _numpy(value):
    if isinstance(value, (list, tuple)):
        return [_numpy(one) for one in value]
    return keras.ops.convert_to_numpy(value)
