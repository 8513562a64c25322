"""How much of the machine a training uses: its work by arithmetic, and the machine's peak by a short measurement."""

import time

from bert_tf.explain.models.architecture import work
from bert_tf.models import ALL_HEADS


def forward_flops(config, heads, batch, tokens, predictions):
    """Floating-point operations of one forward pass, of the matrix products alone. Padding counts, as it is computed.

    Args:
        config: `BertConfig`. heads: names of those that are asked. batch: B. tokens: T. predictions: P places the
            masked-LM head is asked for.

    Returns: float.
    """
    needed = work(config, tokens, predictions)
    return float(batch * sum(flops for part, flops in needed.items() if part in heads or part not in ALL_HEADS))


def training_flops(*model):
    """Floating-point operations of one update: the backward pass counts twice the forward one (Narayanan et al. 2021,
    appendix). What rematerialisation computes again does not count. Args and returns as `forward_flops`."""
    return 3.0 * forward_flops(*model)


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
