"""Memory that was freed goes back to the system."""

import os
import sys
import time
import types

import numpy as np
import pytest

from bert_tf.resources.memory_budget import resident_bytes
from ui.server import allocator


class Cycle:
    """An object that refers to itself, as Keras models do."""

    gone = 0

    def __init__(self):
        self.me = self

    def __del__(self):
        Cycle.gone += 1


def test_what_refers_to_itself_is_freed_a_moment_after_the_last_call():
    Cycle.gone = 0
    give_back = allocator.GiveBackLater(0.2)
    for _ in range(3):
        Cycle()
        give_back()
    end = time.monotonic() + 60
    while Cycle.gone < 3 and time.monotonic() < end:
        time.sleep(0.05)
    assert Cycle.gone == 3


@pytest.mark.parametrize("is_imported", [True, False])
def test_kernels_are_dropped_but_not_while_tensorflow_is_imported(monkeypatch, is_imported):
    dropped = []
    context = types.SimpleNamespace(clear_kernel_cache=lambda: dropped.append(True))
    library = types.SimpleNamespace(__spec__=types.SimpleNamespace(_initializing=not is_imported))
    monkeypatch.setitem(sys.modules, "tensorflow", library)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", types.SimpleNamespace(context=lambda: context))
    allocator.drop_kernels()
    assert dropped == [True] * is_imported


def test_gradients_are_the_same_after_their_kernels_were_dropped():
    import keras

    variable = keras.Variable(np.ones(3, np.float32))

    def gradient():
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = tf.reduce_sum(tf.convert_to_tensor(variable) ** 3)
        return np.asarray(tape.gradient(value, variable.value))

    before = gradient()
    allocator.drop_kernels()
    np.testing.assert_array_equal(gradient(), before)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_blocks_leave_the_process():
    allocator.prepare()
    variable = "TF_ONEDNN_USE_SYSTEM_ALLOCATOR"
    assert os.environ[variable] == "1" and variable not in allocator.environment_of_child()
    before = resident_bytes()
    # Blocks of 3 MB with small objects between them, which keep the allocator from shrinking its heap.
    blocks = [(np.ones(3_000_000, np.uint8), bytearray(500)) for _ in range(100)]
    assert resident_bytes() > before + 250e6
    small = [pair[1] for pair in blocks]
    del blocks
    allocator.give_back()
    assert resident_bytes() < before + 50e6 and len(small) == 100


def test_another_system_keeps_its_allocator(monkeypatch):
    def library(name):
        raise TypeError("as Windows answers")

    allocator._library.cache_clear()
    allocator.prepare.cache_clear()
    monkeypatch.setattr(allocator.sys, "platform", "win32")
    monkeypatch.setattr(allocator.ctypes, "CDLL", library)
    allocator.prepare()
    allocator.trim()
    allocator._library.cache_clear()
    allocator.prepare.cache_clear()
