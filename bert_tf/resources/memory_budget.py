"""One bound, in bytes, for what a server holds: models, and in the explorer traces, snapshots and results of pages."""

import collections
import contextlib
import dataclasses
import itertools
import math
import operator
import os
import pathlib
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any

_RESIDENT = pathlib.Path("/proc/self/statm")
_REMEMBERED = 2.0  # seconds
_FILLED = 10.0  # seconds after which a model that was loaded is in memory
_LOOK = 0.1  # seconds between two looks of somebody who waits for room
_TURN = 10.0  # seconds that somebody who goes on without room waits for others who do
_SHARE = 4  # of the bound a fourth is for the values, however much the process needs besides


def resident_bytes() -> int | None:
    """The resident memory of this process; None where the system does not tell it as Linux does."""
    try:
        return int(_RESIDENT.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


class RestOfProcess:
    """What a process needs besides the values of its budget: libraries, and memory that they do not give back.

    It is measured. It is negative if the values were estimated too high.

    Args:
        resident: callable () -> the resident bytes of the process, or None if they are not known.
        clock: callable () -> seconds.
    """

    def __init__(self, resident: Callable[[], int | None] = resident_bytes, clock: Callable[[], float] | None = None):
        self._resident, self._clock = resident, clock or time.monotonic
        self._seen: collections.deque[tuple[float, int]] = collections.deque()  # what may become the least
        self._steady: collections.deque[tuple[float, int]] = collections.deque()  # what may become the most of these

    def measure(self, held: int) -> tuple[int, int]:
        """The bytes besides the `held` ones: the most and the least that they may be. 0 if they are not known.

        The least is that of the last two seconds, as a forward pass needs more for a moment. The most is what they are
        now, or the highest least of the last ten seconds: a model counts as held before all of it is in memory, which
        makes them look smaller until then.
        """
        resident, now = self._resident(), self._clock()
        if resident is None:
            return 0, 0
        rest = resident - held
        while self._seen and self._seen[-1][1] >= rest:  # it will not be the least again
            self._seen.pop()
        self._seen.append((now, rest))
        while self._seen[0][0] < now - _REMEMBERED:
            self._seen.popleft()
        least = self._seen[0][1]
        while self._steady and self._steady[-1][1] <= least:  # it will not be the most again
            self._steady.pop()
        self._steady.append((now, least))
        while self._steady[0][0] < now - _FILLED:
            self._steady.popleft()
        return max(rest, self._steady[0][1]), least


class Holder:
    """What a holder of values does unless it says otherwise, see `MemoryBudget`."""

    def drop_in_need(self) -> bool:
        """Drop something that `drop_oldest` keeps, for something large that has no room; returns whether it did."""
        return False

    def after_drops(self) -> None:
        """Called once after some of the values were dropped, when others may use the budget again: it may take time."""


class MemoryBudget:
    """A bound for all holders of values together; it drops the values that were used longest ago.

    A holder is a `Holder` with the attribute ``bytes`` and the methods ``oldest()``, the time at which the value that
    it would drop next was last used (None: it has nothing to drop), ``drop_oldest()`` and ``drop_all()``. It calls
    ``make_room`` while it holds no lock of its own, as the budget calls it in turn.

    Args:
        most_bytes: the bound, in bytes.
        rest: what the process needs besides, which then counts too; None if the bound is for the values alone. If the
            process needs nearly the whole bound, values of a fourth of it are held all the same: dropping them would
            not bring the process below the bound, and each press would compute them again.
    """

    def __init__(self, most_bytes: int, rest: RestOfProcess | None = None) -> None:
        self.most_bytes, self._rest = most_bytes, rest
        self._lock = threading.RLock()
        self._references: list[weakref.ref[Any]] = []  # to the holders
        self._reserved = 0
        self._without_room: list[int] = []  # threads that took more bytes than there was room for

    def add(self, holder: Any) -> None:
        """Count the bytes of ``holder`` until nothing else refers to it."""
        with self._lock:
            self._references = [weakref.ref(one) for one in (*self._holders(), holder)]

    def _holders(self):
        """The holders that something else refers to: a new list, as one may leave while another thread reads it."""
        return [holder for reference in self._references if (holder := reference()) is not None]

    @property
    def bytes(self) -> int:
        """The bytes of all holders."""
        with self._lock:
            return sum(holder.bytes for holder in self._holders())

    def make_room(self) -> None:
        """Drop values until the bound is kept, or no holder has a value to drop."""
        dropped, _ = self._drop()
        for holder in dropped:
            holder.after_drops()

    def _drop(self, size: int = 0) -> tuple[set[Any], int]:
        """Drop values until ``size`` more bytes fit into the bound; returns their holders, and the bytes still missing.

        Something large (``size`` is not 0) has no room in what the process needs at this moment for its passes.
        """
        dropped: set[Any] = set()
        with self._lock:
            most, least = (0, 0) if self._rest is None else self._rest.measure(self.bytes)
            rest = most if size else least
            rest = min(rest, self.most_bytes - self.most_bytes // _SHARE)
            while (missing := self.bytes + self._reserved + size + rest - self.most_bytes) > 0:
                times = [(time, holder) for holder in self._holders() if (time := holder.oldest()) is not None]
                if times:
                    holder = min(times, key=operator.itemgetter(0))[1]
                    holder.drop_oldest()
                else:
                    holder = next((one for one in self._holders() if size and one.drop_in_need()), None)
                    if holder is None:
                        return dropped, missing
                dropped.add(holder)
        return dropped, 0

    @contextlib.contextmanager
    def room(self, size: int, waits: Callable[[int], bool] = lambda missing: False) -> Iterator[None]:
        """Make room for ``size`` more bytes, which are taken in this block: nobody else is given the same room.

        Those who no longer wait take the bytes without room, one after the other: all at once they would take several
        times what is missing.

        Args:
            size: int. The bytes.
            waits: callable (missing bytes) -> whether to wait and look again. It is called while there is no room,
                without a lock.
        """
        taken, is_beyond, thread = False, False, threading.get_ident()
        until: float | None = None  # when this thread goes on, whatever others have taken; None while it waits for room
        try:
            while not taken:
                with self._lock:
                    dropped, missing = self._drop(size)
                    if size and missing and until is not None:
                        is_beyond = not set(self._without_room) - {thread} or time.monotonic() >= until
                    taken = not missing or not size or is_beyond
                    self._reserved += size if taken else 0
                    self._without_room += [thread] if is_beyond else []
                for holder in dropped:
                    holder.after_drops()
                if not taken:
                    goes_on = waits(missing)
                    if goes_on or until is not None:
                        time.sleep(_LOOK)
                    else:
                        until = time.monotonic() + _TURN
            yield
        finally:
            with self._lock:
                self._reserved -= size if taken else 0
                if is_beyond:
                    self._without_room.remove(thread)

    def drop_all(self) -> None:
        """Drop the values of all holders."""
        with self._lock:
            for holder in self._holders():
                holder.drop_all()


class ByteStore(Holder):
    """A store of values; the least recently used ones are dropped when the budget is exceeded.

    Several threads may use it at the same time.

    Args:
        budget: ``MemoryBudget``. It counts the values, and drops them.
        size: callable (value) -> its bytes.
        keep: how many of the values that were used last are never dropped.
        keep_seconds: how long a value is not dropped after it was used.
    """

    def __init__(
        self, budget: MemoryBudget, size: Callable[[Any], int], keep: int = 0, keep_seconds: float = 0.0
    ) -> None:
        self._budget, self._size, self._keep, self._keep_seconds = budget, size, keep, keep_seconds
        self._lock = threading.RLock()
        self._entries: collections.OrderedDict[Hashable, _Entry] = collections.OrderedDict()
        self._bytes: int | None = 0  # of the entries; None after a change: the budget asks more often than they change
        budget.add(self)

    @property
    def bytes(self) -> int:
        """The bytes of all values."""
        with self._lock:
            if self._bytes is None:
                self._bytes = sum(entry.size for entry in self._entries.values())
            return self._bytes

    def get(self, key: Hashable) -> Any:
        """The value under ``key``, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            entry.used_at = time.monotonic()
            self._entries.move_to_end(key)
            return entry.value

    def put(self, key: Hashable, value: Any) -> None:
        """Store ``value`` under ``key``; other values make room for it."""
        entry = _Entry(value, self._size(value), math.inf)
        with self._lock:
            self._entries[key], self._bytes = entry, None
            self._entries.move_to_end(key)
        # It is in memory already: counted as what the process needs besides, it would count twice.
        try:
            self._budget.make_room()
        finally:  # or it could never be dropped
            entry.used_at = time.monotonic()

    def drop(self, is_gone: Callable[[Any], bool]) -> None:
        """Drop the values with a key for which ``is_gone(key)`` is true."""
        with self._lock:
            for key in [key for key in self._entries if is_gone(key)]:
                del self._entries[key]
            self._bytes = None

    def oldest(self) -> float | None:
        """The time at which the value that is dropped next was last used; None if none may be dropped."""
        with self._lock:
            key = self._oldest_key()
            return None if key is None else self._entries[key].used_at

    def drop_oldest(self) -> None:
        """Drop the value that was used longest ago, if one may be dropped."""
        with self._lock:
            key = self._oldest_key()
            if key is not None:
                del self._entries[key]
                self._bytes = None

    def _oldest_key(self):
        """The key of the value that is dropped next; None if none may be dropped."""
        older = itertools.islice(self._entries, max(0, len(self._entries) - self._keep))
        key = next((key for key in older if not self._is_in_use(key)), None)
        is_old = key is not None and self._entries[key].used_at <= time.monotonic() - self._keep_seconds
        return key if is_old else None

    def _is_in_use(self, key):
        return False

    def drop_all(self) -> None:
        """Drop all values, also those that ``drop_oldest`` may not drop."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0


class WeakValues:
    """Values by their keys, for as long as others refer to them. Several threads may use it at the same time.

    A `weakref.WeakValueDictionary` changes as soon as a thread lets go of a value, also while another one reads it all.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._references: dict[Any, weakref.ref[Any]] = {}

    def get(self, key: Hashable) -> Any:
        """The value under ``key``, or None."""
        with self._lock:
            reference = self._references.get(key)
        return None if reference is None else reference()

    def put(self, key: Hashable, value: Any) -> None:
        """Refer to ``value`` under ``key``."""
        with self._lock:
            alive = {one: reference for one, reference in self._references.items() if reference() is not None}
            self._references = {**alive, key: weakref.ref(value)}

    def items(self) -> list[tuple[Any, Any]]:
        """The (key, value) of all values."""
        with self._lock:
            references = list(self._references.items())
        return [(key, value) for key, reference in references if (value := reference()) is not None]

    def drop(self, is_gone: Callable[[Any], bool]) -> None:
        """Forget the values with a key for which ``is_gone(key)`` is true."""
        with self._lock:
            self._references = {key: one for key, one in self._references.items() if not is_gone(key)}


@dataclasses.dataclass
class _Entry:
    value: object
    size: int
    used_at: float
