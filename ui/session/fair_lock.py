"""A lock for work in steps: a thread that waits for the lock gets it between two steps of another thread."""

import collections
import threading


class FairLock:
    """A lock that threads get in the order in which they called ``acquire``.

    A thread that releases a `threading.Lock` and acquires it again at once mostly gets it before the threads that wait.
    """

    def __init__(self):
        self._guard, self._held, self._waiting = threading.Lock(), False, collections.deque()

    def acquire(self):
        with self._guard:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def release(self):
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()  # the next thread has the lock now: it stays held
            else:
                self._held = False

    def __enter__(self):
        self.acquire()

    def __exit__(self, *_):
        self.release()
