"""A store that all visitors share, bounded in bytes."""

import collections
import threading


class ByteStore:
    """A store of values; it drops the least recently used ones when all together take more than ``most_bytes``.

    Several threads may use it at the same time.

    Args:
        most_bytes: the bound, in bytes. size: callable (value) -> its bytes.
    """

    def __init__(self, most_bytes, size):
        self._most, self._size = most_bytes, size
        self._values, self._held, self._lock = collections.OrderedDict(), 0, threading.RLock()

    def get(self, key):
        """The value under ``key``, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key, value):
        """Store ``value`` under ``key``."""
        with self._lock:
            self.drop(lambda other: other == key)
            size = self._size(value)
            self.make_room(size)
            self._values[key] = value
            self._held += size

    def make_room(self, size):
        """Drop values until ``size`` more bytes fit into the bound, or the store is empty."""
        with self._lock:
            while self._values and self._held + size > self._most:
                self._held -= self._size(self._values.popitem(last=False)[1])

    def drop(self, is_gone):
        """Drop the values with a key for which ``is_gone(key)`` is true."""
        with self._lock:
            for key in [key for key in self._values if is_gone(key)]:
                self._held -= self._size(self._values.pop(key))
