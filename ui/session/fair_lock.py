"""A lock for work in steps: whoever waits gets it between two of them."""

import collections
import threading


class FairLock:
    """A lock that is handed over in the order in which it was asked for.

    With Python's own, a thread that releases it and asks for it again at once mostly gets it again, whoever waits.
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
                self._waiting.popleft().release()  # handed over: it stays held
            else:
                self._held = False

    def __enter__(self):
        self.acquire()

    def __exit__(self, *_):
        self.release()
