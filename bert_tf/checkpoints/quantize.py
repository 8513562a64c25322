"""Eight-bit storage of matrices: one symmetric scale for each row.

A row of float32 x is kept as round(x / s) in int8 with s = max|x| / 127; read back it is at most s / 2 off.
This is for storage only: a model computes with the dequantised values.
"""

import numpy as np

SCALE_SUFFIX = ".scale"
_LARGEST = 127


def quantize_rows(matrix):
    """Args: matrix: float [R, C], finite.

    Returns: (int8 [R, C], scales float32 [R]); a row of zeros has scale 0.

    Raises:
        ValueError: a value is not finite.
    """
    matrix = np.asarray(matrix, np.float32)
    scales = np.abs(matrix).max(axis=1, initial=0.0) / np.float32(_LARGEST)
    if not np.isfinite(scales).all():
        row = int(np.flatnonzero(~np.isfinite(scales))[0])
        raise ValueError(f"row {row} holds a value that is not finite")
    steps = np.where(scales > 0, scales, 1).astype(np.float32)
    whole = np.rint(matrix / steps[:, None]).clip(-_LARGEST, _LARGEST)
    return whole.astype(np.int8), scales.astype(np.float32)


def dequantize_rows(whole, scales):
    """Args: whole: int8 [R, C]. scales: float [R]. Returns: float32 [R, C]."""
    return whole.astype(np.float32) * np.asarray(scales, np.float32)[:, None]
