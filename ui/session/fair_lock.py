"""Who goes first: a lock that threads get in turn, and a count of the presses that long work gives way to."""

import collections
import contextlib
import threading
import time

from ui.shell.server_cache import server_cache

# Long work waits this many seconds for the presses of all visitors: a tenth of the time is left to it under any load.
_LONGEST_WAIT = 1.0
# While somebody waits for the memory that long work takes, half of the time is left to it.
_SHORT_WAIT, _HURRIED = 0.1, 0.5
_RECENT = 20.0  # seconds: whoever pressed no longer ago counts as a visitor who is here now


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


class Presses:
    """The presses that are being answered. Long work waits for them between its steps.

    A press and a step that run at the same time share the cores, and the press takes twice as long.

    Args:
        longest: float. The most seconds that a step waits, so that long work goes on under any load.
    """

    def __init__(self, longest):
        self._longest, self._count, self._changed = longest, 0, threading.Condition()
        self._here, self._hurried_until = threading.local(), 0.0
        self._pressed_at: dict[str, float] = {}  # of each visitor, the latest press

    @contextlib.contextmanager
    def answered(self, visitor):
        """A press of a visitor (the id of the session) is being answered by this thread in the block."""
        with self._changed:
            self._pressed_at = self._recent() | {visitor: time.monotonic()}
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    @contextlib.contextmanager
    def paused(self):
        """The press that this thread answers, if there is one, waits for long work in the block."""
        count = getattr(self._here, "count", 0)
        self._add(-count)
        try:
            yield
        finally:
            self._add(count)

    def are_of_several(self):
        """Whether more than one visitor pressed something in the last seconds."""
        with self._changed:
            return len(self._recent()) > 1

    def hurry(self):
        """Somebody waits for what long work holds: for half a second, its steps wait only a short time."""
        self._hurried_until = time.monotonic() + _HURRIED

    def give_way(self):
        """Wait until no press is being answered, at most the longest time."""
        longest = _SHORT_WAIT if time.monotonic() < self._hurried_until else self._longest
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0, longest)

    def _recent(self):
        since = time.monotonic() - _RECENT
        return {visitor: at for visitor, at in self._pressed_at.items() if at >= since}

    def _add(self, number):
        self._here.count = getattr(self._here, "count", 0) + number
        with self._changed:
            self._count += number
            self._changed.notify_all()


@server_cache
def presses() -> Presses:
    """The presses of all visitors that are being answered; jobs give way to them between their steps."""
    return Presses(_LONGEST_WAIT)
