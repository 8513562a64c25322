"""The TensorFlow engine: one compiled function of the Keras layers for each set of outputs and bucket of shapes.

B batch, T tokens, P predicted positions.
"""

import threading
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.models import BertModel, named_variables, view

LENGTHS = (16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512)
BATCHES = (1, 2, 4, 8, 16, 24, 32)
POSITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_TOKENS_FIRST = (
    "sequence_output",
    "mlm_logits_all",
    "replaced_logits",
    "embeddings",
    "embeddings_sum",
    "hidden_states",
)


class TensorFlowEngine:
    """Runs views of a `BertModel` as `tf.function`s. Batches are padded to a bucket of shapes; results are cut again.

    Args:
        model: `BertModel`. Its weights are shared if the precision is "float32".
        precision: str. "float32" or "bfloat16".

    Attributes:
        compiled: int. The number of compiled functions.
    """

    def __init__(self, model: BertModel, precision: str) -> None:
        self._model = model if precision == "float32" else _in_precision(model, precision)
        self._views: dict[tuple[str, ...], BertModel] = {}
        self._functions: dict[Any, Any] = {}
        self._mlm_reading: Any = None
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """0: the compiled functions use the weights of the Keras model."""
        return 0

    def run(self, arrays: dict[str, np.ndarray], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Run one forward pass as `Runtime.run`, with checked arrays."""
        rows, tokens = arrays["token_ids"].shape
        positions = arrays["mask_positions"].shape[1] if "mask_positions" in arrays else 0
        sizes = (
            _bucket(rows, BATCHES),
            self._length_bucket(tokens),
            _bucket(positions, POSITIONS) if positions else 0,
        )
        padded = [_pad(array, sizes[0], sizes[2 if name == "mask_positions" else 1]) for name, array in arrays.items()]
        results = self._function(outputs, sizes, tuple(arrays))(*padded)
        return {name: _without_padding(name, results[name], rows, tokens, positions) for name in outputs}

    def read_mlm(self, states: np.ndarray, answers: np.ndarray, top_k: int) -> tuple[np.ndarray, ...]:
        """Run the MLM head as `Runtime.read_mlm`."""
        with self._lock:
            if self._mlm_reading is None:
                layers = self._model.bert_layers
                head, table = layers["mlm"], layers["embeddings"].token_table

                def read(states, answers, top_k):
                    return _mlm_reading(head.logits(states, table), answers, top_k)

                shapes = (None, None, self._model.bert_config.hidden_size), (None,), ()
                signature = [tf.TensorSpec(shape, dtype) for shape, dtype in zip(shapes, (tf.float32, *[tf.int32] * 2))]
                self._mlm_reading = tf.function(read, input_signature=signature, autograph=False)
            function = self._mlm_reading.get_concrete_function()
        return tuple(part.numpy() for part in function(*map(tf.convert_to_tensor, (states, answers, np.int32(top_k)))))

    @property
    def compiled(self) -> int:
        """The number of compiled functions."""
        return len(self._functions)

    def _length_bucket(self, tokens):
        return min(_bucket(tokens, LENGTHS), self._model.bert_config.max_tokens)

    def _function(self, outputs, sizes, names):
        key = outputs, sizes
        with self._lock:  # the tracing of Keras and TensorFlow is not thread-safe
            if key not in self._functions:
                if outputs not in self._views:
                    self._views[outputs] = view(self._model, outputs)
                self._functions[key] = _compile(self._views[outputs], sizes, names)
            return self._functions[key]


def _mlm_reading(logits, answers, top_k):
    """The results of `Runtime.read_mlm` from logits [P, S, V]."""
    shape, size = tf.shape(logits)[:2], tf.shape(logits)[2]
    logits = tf.reshape(tf.cast(logits, tf.float32), (-1, size))
    best, ids = tf.math.top_k(logits, top_k)
    # Subtract the highest logit: nothing overflows, and the entropy is not a difference of large numbers.
    highest = best[:, :1]
    logits = logits - highest
    powers = tf.exp(logits)
    total = tf.reduce_sum(powers, axis=1)
    entropies = tf.math.log(total) - tf.reduce_sum(powers * logits, axis=1) / total
    last = tf.reshape(ids[:, 0], shape)[:, -1]
    answers = tf.repeat(tf.where(answers < 0, last, answers), shape[1])[:, None]
    answer_logits = tf.gather(logits, answers, batch_dims=1)
    # A sum of float32 ones is exact up to 2^24.
    ranks = 1 + tf.cast(tf.reduce_sum(tf.cast(logits > answer_logits, tf.float32), axis=1), tf.int32)
    probabilities = tf.exp(best - highest) / total[:, None]
    parts = ids, probabilities, entropies, ranks, tf.exp(answer_logits[:, 0]) / total
    return tuple(tf.reshape(part, tf.concat([shape, tf.shape(part)[1:]], 0)) for part in parts)


def _compile(model, sizes, names):
    rows, tokens, positions = sizes

    def forward(*arrays):
        return model(dict(zip(names, arrays)), training=False)

    signature = [tf.TensorSpec((rows, positions if name == "mask_positions" else tokens), tf.int32) for name in names]
    return tf.function(forward, input_signature=signature, autograph=False).get_concrete_function()


def _in_precision(model, precision):
    copy = BertModel(model.bert_config, ("sequence_output",), model.bert_heads, dtype=precision)
    values = named_variables(model)
    for name, variable in named_variables(copy).items():
        variable.assign(values[name])
    return copy


def _bucket(size, buckets):
    """The smallest bucket that holds `size`; beyond the last bucket, a multiple of it."""
    return next((bucket for bucket in buckets if bucket >= size), -(-size // buckets[-1]) * buckets[-1])


def _pad(array, rows, columns):
    return np.pad(array, ((0, rows - array.shape[0]), (0, columns - array.shape[1])))


def _without_padding(name, value, rows, tokens, positions):
    if isinstance(value, (list, tuple)):
        return [_without_padding(name, layer_value, rows, tokens, positions) for layer_value in value]
    array = _array(value)[:rows]
    if name == "mlm_logits":
        return array[:, :positions]
    if name == "attentions":
        return array[:, :, :tokens, :tokens]
    if name in ("queries", "keys", "values"):
        return array[:, :, :tokens]
    return array[:, :tokens] if name in _TOKENS_FIRST else array


def _array(tensor):
    """A float32 array over the memory of the tensor, if its dtype is float32 (`.numpy()` copies)."""
    return np.asarray(memoryview(tensor if tensor.dtype == tf.float32 else tf.cast(tensor, tf.float32)))
