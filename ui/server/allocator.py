"""The memory allocator of the GNU C library: memory that was freed goes back to the system.

By default the allocator keeps freed blocks of up to 32 MB for later. The matrices of a model have such sizes: of a
server that loaded and dropped some models, a gigabyte was freed memory. With another C library nothing is done here.
"""

import ctypes
import functools
import gc
import os
import sys
import threading

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # M_MMAP_THRESHOLD and M_ARENA_MAX of malloc.h
_LARGE = 1 << 20  # bytes from which a block is mapped on its own, and given back as soon as it is freed
# Heaps that small blocks come from: by default eight for each processor, with blocks in use scattered over all of them.
_ARENAS = 2
# TensorFlow takes large blocks for oneDNN from an allocator of its own, which gives none of them back, but for this
# variable. Gradients of long texts then take a tenth longer.
_FROM_SYSTEM = "TF_ONEDNN_USE_SYSTEM_ALLOCATOR"


@functools.cache
def _library():
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


@functools.cache
def prepare():
    """Give large blocks back as soon as they are freed. Call it in every run, before TensorFlow is imported; it acts
    once."""
    if _library():
        _library().mallopt(_MMAP_THRESHOLD, _LARGE)
        _library().mallopt(_ARENA_MAX, _ARENAS)
        os.environ.setdefault(_FROM_SYSTEM, "1")


def environment_of_child():
    """The environment variables for a process that this one starts: it keeps its memory until it ends."""
    return {name: value for name, value in os.environ.items() if name != _FROM_SYSTEM}


def give_back():
    """Free what only cycles of objects hold, such as Keras models, and give freed memory back to the system."""
    gc.collect()
    trim()


def trim():
    """Give freed memory back to the system, without a search for cycles of objects, for which all visitors wait."""
    if _library():
        _library().malloc_trim(0)


def drop_kernels():
    """Free TensorFlow's kernels: it keeps one for each variable that was ever made, 0.9 MB for a dropped Small.

    The next gradients make theirs again, in a third of a second.
    """
    library = sys.modules.get("tensorflow")
    # Not while another thread imports it: importing a part of it here would break that import.
    if library is not None and not library.__spec__._initializing:
        sys.modules["tensorflow.python.eager.context"].context().clear_kernel_cache()  # as keras.utils.clear_session


class GiveBackLater:
    """Calls ``give_back`` some seconds after the last of several calls: what is in use then may be free a moment later.

    Args:
        seconds: to wait.
    """

    def __init__(self, seconds):
        self._seconds, self._timer, self._lock = seconds, None, threading.Lock()

    def __call__(self):
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(self._seconds, give_back)
            self._timer.daemon = True
            self._timer.start()
