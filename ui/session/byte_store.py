"""What is held for all visitors together, bounded in bytes."""

import collections
import threading


class ByteStore:
    """The last used values, the longest unused thrown away first when they hold more than ``most_bytes``.

    Safe from several threads.

    Args:
        most_bytes: that are held. size: callable (value) -> its bytes.
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
        """Keep ``value`` under ``key``."""
        with self._lock:
            self.drop(lambda other: other == key)
            size = self._size(value)
            self.make_room(size)
            self._values[key] = value
            self._held += size

    def make_room(self, size):
        """Throw away until ``size`` bytes more are within the bound, or nothing is left."""
        with self._lock:
            while self._values and self._held + size > self._most:
                self._held -= self._size(self._values.popitem(last=False)[1])

    def drop(self, is_gone):
        """Let go the values for whose key ``is_gone(key)`` holds."""
        with self._lock:
            for key in [key for key in self._values if is_gone(key)]:
                self._held -= self._size(self._values.pop(key))
