"""How much of the machine a training uses: its work by arithmetic, and the machine's peak by a short measurement.

B sequences, T tokens, P predicted positions, H hidden size, I intermediate size, L layers, V vocabulary.
"""

import time


def training_flops(config, batch, tokens, predictions):
    """Floating-point operations of one update, forward and backward, of the matrix products alone.

    A product of [m, k] and [k, n] counts 2 m k n, and the backward pass twice the forward one (Narayanan et al.
    2021, appendix). Padding counts, as it is computed; what rematerialisation computes again does not.

    Args:
        config: `BertConfig`. batch: B. tokens: T. predictions: P, 0 without a masked-LM head.

    Returns: float.
    """
    hidden, wide = config.hidden_size, config.intermediate_size
    matrices = (4 * hidden * hidden + 2 * hidden * wide) // config.stacks
    layer = batch * tokens * (matrices + 2 * tokens * hidden)
    head = batch * predictions * (hidden * hidden + hidden * config.vocab_size)
    pooler = batch * hidden * hidden
    return 3.0 * 2.0 * (config.num_hidden_layers * layer + head + pooler)


def measure_peak(precision="float32", seconds=0.4, size=None):
    """The FLOP/s of square matrix products on the default device: what a training can at most reach there.

    Args:
        precision: of `train.precision`; all but float32 are measured in the narrow type they multiply in.
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
    return 2.0 * size ** 3 / best
