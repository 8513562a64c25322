"""A short measurement of the highest matrix multiplication speed of the machine."""

import functools
import time


@functools.cache
def measure_peak_flops(precision: str = "float32", seconds: float = 0.4, size: int | None = None) -> float:
    """Measures the FLOP/s of square matrix products on the default device, the upper bound of a training there.

    A process measures once for each combination of arguments.

    Args:
        precision: str. One of `training.precision.PRECISIONS`; all except float32 are measured in the 16-bit type of
            their matrix products.
        seconds: float. How long to measure.
        size: int. The number of rows of the matrices; None for 2048, or 8192 on a GPU.

    Returns: float, the FLOP/s of the fastest product.
    """
    import tensorflow as tf

    if size is None:
        size = 8192 if tf.config.list_logical_devices("GPU") else 2048
    dtype = {"float32": tf.float32, "mixed_float16": tf.float16}.get(precision, tf.bfloat16)
    matrix = tf.cast(tf.random.stateless_uniform((size, size), (1, 2)), dtype)
    float(tf.matmul(matrix, matrix)[0, 0])
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        # A GPU computes asynchronously; reading one number waits for the whole product.
        float(tf.matmul(matrix, matrix)[0, 0])
        best = min(best, time.perf_counter() - start)
    return 2.0 * size**3 / best
