"""How fast the machine can multiply at most, by a short measurement."""

import time


def measure_peak_flops(precision="float32", seconds=0.4, size=None):
    """The FLOP/s of square matrix products on the default device: what a training can at most reach there.

    Args:
        precision: of `training.precision`; all but float32 are measured in the narrow type they multiply in.
        seconds: to measure for. size: rows of the matrices; default 2048, or 8192 on a GPU.

    Returns: float, the best of the products timed.
    """
    import tensorflow as tf

    if size is None:
        size = 8192 if tf.config.list_logical_devices("GPU") else 2048
    dtype = {"float32": tf.float32, "mixed_float16": tf.float16}.get(precision, tf.bfloat16)
    matrix = tf.cast(tf.random.stateless_uniform((size, size), (1, 2)), dtype)
    float(tf.matmul(matrix, matrix)[0, 0])
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        # Reading one number waits for the whole product on a device of its own clock.
        float(tf.matmul(matrix, matrix)[0, 0])
        best = min(best, time.perf_counter() - began)
    return 2.0 * size**3 / best
