"""Memory that was freed goes back to the system."""

import os
import sys
import time

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


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_freed_blocks_leave_the_process():
    import numpy as np

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
