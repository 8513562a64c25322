"""Conversions of large arrays between float32 and float16.

NumPy takes many times as long where most values are tiny, as in attention maps; OpenVINO does not. Without OpenVINO
NumPy converts them.
"""

import functools
from collections.abc import Callable

import numpy as np

# Numbers converted in one pass. OpenVINO keeps memory for the results of the largest pass, also of those that it writes
# elsewhere. For the attention maps of 512 tokens in Base that would be 75 MB.
_AT_ONCE = 1 << 22


def to_float16(array: np.ndarray) -> np.ndarray:
    """Return a float32 array as float16, rounded as NumPy rounds."""
    return _converted(array, np.float16)


def to_float32(array: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return a float array as float32; one that is float32 already as it is.

    Args:
        array: float array.
        out: float32 array of this shape or None. Where the result may be written; new memory takes longer.
    """
    return _converted(array, np.float32, out) if array.dtype == np.float16 else np.asarray(array, np.float32)


def release_memory() -> None:
    """Free the memory that is kept for the next conversions, at most 24 MB; the next one takes 12 ms more."""
    _converter.cache_clear()


def _converted(array, dtype, out=None):
    convert = _converter(array.dtype, np.dtype(dtype))
    if convert is None:
        return array.astype(dtype)
    result = np.empty(array.shape, dtype) if out is None else out
    values, results = np.ascontiguousarray(array).reshape(-1), result.reshape(-1)
    for start in range(0, values.size, _AT_ONCE):
        convert(values[start : start + _AT_ONCE], results[start : start + _AT_ONCE])
    return result


@functools.cache
def _converter(source: np.dtype, target: np.dtype) -> Callable[[np.ndarray, np.ndarray], None] | None:
    try:
        import openvino as ov
        import openvino.opset13 as op
    except ImportError:
        return None
    from bert_tf.runtime.graphs.bert import writable
    from bert_tf.runtime.openvino_engine import core

    numbers = op.parameter([-1], source)
    compiled = core().compile_model(ov.Model([op.convert(numbers, target)], [numbers]), "CPU")

    def convert(values: np.ndarray, results: np.ndarray) -> None:
        values = writable(values)  # a request does not hold the arrays whose memory it shares
        request = compiled.create_infer_request()  # one for each call, as several threads may convert at once
        request.set_input_tensor(ov.Tensor(values, shared_memory=True))
        request.set_output_tensor(ov.Tensor(results, shared_memory=True))
        request.infer()

    return convert
