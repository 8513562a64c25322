"""Large arrays are converted between float32 and float16 as NumPy converts them, by several threads at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bert_tf.runtime.half_precision import to_float16, to_float32


def maps():
    return np.random.default_rng(0).dirichlet(np.full(64, 0.01), (3, 4, 64)).astype(np.float32)


def test_values_are_those_of_numpy():
    values = maps()
    half = to_float16(values)
    assert half.dtype == np.float16 and np.array_equal(half, values.astype(np.float16))
    half.flags.writeable = False
    for part in (half, half[1], half[:, 2], half[..., ::2]):
        assert to_float32(part).dtype == np.float32 and np.array_equal(to_float32(part), part.astype(np.float32))
    assert to_float32(values) is values


def test_threads_convert_at_once():
    layers = to_float16(np.tile(maps(), (8, 1, 1, 1)))
    wanted = [layer.astype(np.float32) for layer in layers]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            assert all(map(np.array_equal, threads.map(to_float32, layers), wanted))
