"""Eight-bit storage of matrices, with one symmetric scale per row.

A float32 row x is stored as round(x / s) in int8 with s = max|x| / 127, so the error of a value is at most s / 2.
This is for storage only: a model computes with the dequantised values. Shapes: R rows, C columns.
"""

import numpy as np

SCALE_SUFFIX = ".scale"
_LARGEST = 127


def quantize_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise the rows of a matrix.

    Args:
        matrix: float [R, C]. Finite values.

    Returns:
        (int8 [R, C], float32 [R]): the quantised values and the scales; a row of zeros has scale 0.

    Raises:
        ValueError: a value is not finite.
    """
    matrix = np.asarray(matrix, np.float32)
    scales = np.abs(matrix).max(axis=1, initial=0.0) / np.float32(_LARGEST)
    if not np.isfinite(scales).all():
        row = int(np.flatnonzero(~np.isfinite(scales))[0])
        raise ValueError(f"row {row} holds a value that is not finite")
    steps = np.where(scales > 0, scales, 1).astype(np.float32)
    integers = np.rint(matrix / steps[:, None]).clip(-_LARGEST, _LARGEST)
    return integers.astype(np.int8), scales.astype(np.float32)


def dequantize_rows(integers: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the float32 [R, C] matrix of int8 [R, C] values and float [R] scales."""
    return integers.astype(np.float32) * np.asarray(scales, np.float32)[:, None]
