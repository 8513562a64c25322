"""Large arrays are converted between float32 and float16 as NumPy converts them, by several threads at once."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bert_tf.runtime import half_precision
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


@pytest.mark.parametrize("at_once", [1000, maps().size, 2 * maps().size])
def test_the_parts_of_a_large_array_follow_each_other(monkeypatch, at_once):
    monkeypatch.setattr(half_precision, "_AT_ONCE", at_once)
    values, out = maps(), np.empty((3, 4, 64, 64), np.float32)
    half = to_float16(values)
    assert np.array_equal(half, values.astype(np.float16))
    assert to_float32(half, out) is out and np.array_equal(out, half.astype(np.float32))
    assert to_float16(values[:0]).shape == (0, 4, 64, 64)


def test_little_memory_is_kept_for_the_next_conversions():
    script = """if True:
        import numpy as np
        from bert_tf.resources.memory_budget import resident_bytes
        from bert_tf.runtime.half_precision import release_memory, to_float16, to_float32
        from ui.server import allocator
        allocator.prepare()
        to_float32(to_float16(np.ones(10, np.float32)))
        allocator.give_back()
        start = resident_bytes()
        to_float32(to_float16(np.ones(48_000_000, np.float32)))  # 192 MB and 96 MB
        allocator.give_back()
        kept = resident_bytes() - start
        release_memory()
        allocator.give_back()
        print(kept // 1_000_000, (resident_bytes() - start) // 1_000_000)
    """
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    kept, after_release = map(int, answer.split())
    assert kept < 50 and after_release < 10


def test_threads_convert_at_once():
    layers = to_float16(np.tile(maps(), (8, 1, 1, 1)))
    wanted = [layer.astype(np.float32) for layer in layers]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            assert all(map(np.array_equal, threads.map(to_float32, layers), wanted))
