"""Runs a model fast: one compiled function per set of outputs and bucket of shapes, safe from several threads.

B batch, T tokens, P predicted positions.
"""

import threading

import numpy as np
import tensorflow as tf

from bert_tf.models import BertModel, named_variables, view

PRECISIONS = ("float32", "bfloat16")
LENGTHS = (16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512)
BATCHES = (1, 2, 4, 8, 16, 24, 32)
POSITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_INPUTS = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
_TOKENS_FIRST = ("sequence_output", "mlm_logits_all", "embeddings", "embeddings_sum", "hidden_states")


class RuntimeInputError(ValueError):
    """A batch, precision or output that the runtime cannot take; the message says what to change."""


class Runtime:
    """Compiled forward passes of a `BertModel`.

    Args:
        model: a `BertModel`; its weights are shared, not copied, in "float32".
        precision: "float32", or "bfloat16" (half the memory and work, less exact; weights are copied).

    Raises:
        RuntimeInputError: on an unknown precision.
    """

    def __init__(self, model, precision="float32"):
        if precision not in PRECISIONS:
            raise RuntimeInputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}.")
        self.precision = precision
        self._model = model if precision == "float32" else _in_precision(model, precision)
        self._views, self._functions, self._lock = {}, {}, threading.Lock()

    def run(self, batch, outputs):
        """One forward pass.

        Args:
            batch: dict of int32 [B, T] arrays `token_ids`, `segment_ids`, `padding_mask`, and, for "mlm_logits",
                `mask_positions` [B, P].
            outputs: names of outputs (see `bert_tf.models`).

        Returns: dict name -> float32 array, or list of them, of the very B, T and P that went in.

        Raises:
            RuntimeInputError: on arrays that are missing or do not fit together, or are longer than the model reads.
            ValueError: on an output the model does not have.
        """
        outputs = tuple(outputs)
        arrays, (rows, tokens, places) = self._checked(batch, outputs)
        sizes = _bucket(rows, BATCHES), self._length_bucket(tokens), _bucket(places, POSITIONS) if places else 0
        padded = [_pad(array, sizes[0], sizes[2 if name == "mask_positions" else 1])
                  for name, array in arrays.items()]
        results = self._function(outputs, sizes)(*padded)
        return {name: _stripped(name, results[name], rows, tokens, places) for name in outputs}

    def warm(self, outputs, length, batch=1, positions=1):
        """Compiles what `run` will need for batches of this shape, by running one."""
        arrays = {name: np.zeros((batch, length), np.int32) for name in ("token_ids", "segment_ids")}
        arrays["padding_mask"] = np.ones((batch, length), np.int32)
        arrays["mask_positions"] = np.zeros((batch, positions), np.int32)
        self.run(arrays, outputs)

    @property
    def compiled(self):
        """How many functions have been compiled so far."""
        return len(self._functions)

    def _length_bucket(self, tokens):
        return min(_bucket(tokens, LENGTHS), self._model.bert_config.max_position_embeddings)

    def _checked(self, batch, outputs):
        names = _INPUTS if "mlm_logits" in outputs else _INPUTS[:3]
        missing = [name for name in names if name not in batch]
        if missing:
            raise RuntimeInputError(f"The batch lacks {', '.join(missing)}; it has: {', '.join(batch) or 'nothing'}.")
        arrays = {name: np.asarray(batch[name], np.int32) for name in names}
        shape = arrays["token_ids"].shape
        for name, array in arrays.items():
            fits = array.shape == shape if name != "mask_positions" else array.ndim == 2 and len(array) == shape[0]
            if len(shape) != 2 or 0 in array.shape or not fits:
                raise RuntimeInputError(f"{name} has shape {list(array.shape)}, token_ids {list(shape)}; wanted are "
                                        "[B, T] for all of them, [B, P] for mask_positions, none of them empty.")
        longest = self._model.bert_config.max_position_embeddings
        if shape[1] > longest:
            raise RuntimeInputError(f"The batch is {shape[1]} tokens long; this model reads at most {longest}.")
        return arrays, (*shape, arrays["mask_positions"].shape[1] if len(names) == 4 else 0)

    def _function(self, outputs, sizes):
        key = outputs, sizes
        with self._lock:                # Keras' and TensorFlow's tracing are not safe from several threads.
            if key not in self._functions:
                if outputs not in self._views:
                    self._views[outputs] = view(self._model, outputs)
                self._functions[key] = _compile(self._views[outputs], sizes)
            return self._functions[key]


def _compile(model, sizes):
    rows, tokens, places = sizes
    names = _INPUTS if places else _INPUTS[:3]

    def forward(*arrays):
        return model(dict(zip(names, arrays)), training=False)

    signature = [tf.TensorSpec((rows, places if name == "mask_positions" else tokens), tf.int32) for name in names]
    return tf.function(forward, input_signature=signature, autograph=False).get_concrete_function()


def _in_precision(model, precision):
    copy = BertModel(model.bert_config, ("sequence_output",), model.bert_heads, dtype=precision)
    for name, variable in named_variables(copy).items():
        variable.assign(named_variables(model)[name])
    return copy


def _bucket(size, buckets):
    """The least bucket that holds `size`; beyond the last, multiples of it."""
    return next((bucket for bucket in buckets if bucket >= size), -(-size // buckets[-1]) * buckets[-1])


def _pad(array, rows, columns):
    return np.pad(array, ((0, rows - array.shape[0]), (0, columns - array.shape[1])))


def _stripped(name, value, rows, tokens, places):
    if isinstance(value, (list, tuple)):
        return [_stripped(name, one, rows, tokens, places) for one in value]
    array = _array(value)[:rows]
    if name == "mlm_logits":
        return array[:, :places]
    if name == "attentions":
        return array[:, :, :tokens, :tokens]
    if name in ("queries", "keys", "values"):
        return array[:, :, :tokens]
    return array[:, :tokens] if name in _TOKENS_FIRST else array


def _array(tensor):
    """A float32 array over the tensor's own memory where it can be (`.numpy()` copies)."""
    return np.asarray(memoryview(tensor if tensor.dtype == tf.float32 else tf.cast(tensor, tf.float32)))
