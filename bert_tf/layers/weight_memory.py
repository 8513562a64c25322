"""The memory of weights that are read from a file: NumPy's, which goes back to the system when the model is dropped.

TensorFlow's allocator on x86 (that of oneDNN) keeps all memory that it ever had for large tensors. Of a server that had
built and dropped the Keras model of BERT-base, that was 370 MB.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

_ALIGNMENT = 64  # bytes; TensorFlow's kernels read from such addresses
_LARGE = 1 << 18  # bytes from which oneDNN's allocator keeps freed memory


def aligned_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros at an address that TensorFlow can use, float32 [*shape]. The system gives the memory when it is written."""
    size = 4 * int(np.prod(shape))
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(np.float32).reshape(shape)


def shared_tensor(values: np.ndarray) -> Any:
    """A tensor for a new variable: with TensorFlow it shares the memory of `values`, if they are large.

    Args:
        values: float32, from `aligned_zeros`. Do not change them afterwards.

    Returns:
        A TensorFlow tensor; `values` themselves with another backend, or if they are small.
    """
    if keras.backend.backend() != "tensorflow" or values.nbytes < _LARGE:
        return values
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(values.__dlpack__())


@keras.saving.register_keras_serializable(package="bert_tf")
class ZerosUntilRead(keras.initializers.Zeros):
    """Zeros for a weight that is read from a file later. Until then it takes no memory."""

    def __call__(self, shape, dtype=None):
        if keras.backend.standardize_dtype(dtype) != "float32":
            return super().__call__(shape, dtype)
        return keras.ops.convert_to_tensor(shared_tensor(aligned_zeros(tuple(shape))))
