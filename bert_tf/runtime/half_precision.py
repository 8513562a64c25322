"""Rounding of large arrays to float16."""

import functools

import numpy as np


def to_float16(array: np.ndarray) -> np.ndarray:
    """Return a float32 array of four axes as float16, rounded as NumPy rounds.

    NumPy takes many times as long where most values are tiny, as in attention maps; OpenVINO does not. Without OpenVINO
    NumPy is used.
    """
    convert = _converter()
    return array.astype(np.float16) if convert is None else convert(array)


@functools.cache
def _converter():
    try:
        import openvino as ov
        import openvino.opset13 as op
    except ImportError:
        return None
    from bert_tf.runtime.openvino_engine import core

    maps = op.parameter([-1, -1, -1, -1], np.float32)
    compiled = core().compile_model(ov.Model([op.convert(maps, np.float16)], [maps]), "CPU")
    return lambda array: compiled(np.ascontiguousarray(array))[0]
