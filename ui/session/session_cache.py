"""A cache for each visit: the values that pages computed last, bounded in bytes.

A place of the cache holds one value. A value that the last run of the page used is not dropped for two minutes, as the
page needs it again in the next run. The others are dropped, the least recently used first, when the visit holds more
than ``max_session_megabytes``, or all visits, models and traces together more than ``max_megabytes``. While a run is
not over, what the run before used makes room for values of this visit alone.
"""

import collections
import collections.abc
import dataclasses
import threading
import time

import numpy as np
import streamlit as st

from bert_tf.resources.memory_budget import Holder
from ui.session import state
from ui.session.memory_budget import memory_budget

_IDLE = 120.0  # seconds after which other visits may need the memory of a visit more than its next run
_SMALL = 1024  # a text of fewer bytes is counted again in each place that holds it


class SessionCache(Holder):
    """The values of one visit, by place; the least recently used first.

    Args:
        most_bytes: the bound of this visit, in bytes. The values that the current run has used may exceed it.
        budget: ``MemoryBudget`` that counts the values too, and drops some of them; None for no further bound.
    """

    def __init__(self, most_bytes, budget=None):
        self._most, self._budget = most_bytes, budget
        # The places that this run has used, and while it is not over those that the runs before have used.
        self._used, self._used_before = set(), set()
        # Another visit drops values of this one when the budget is exceeded.
        self._places, self._lock = collections.OrderedDict(), threading.RLock()
        self._bytes = 0  # of the values; None after a change: all visits' puts ask for it
        if budget is not None:
            budget.add(self)

    def begin(self):
        """Begin a run of the page: it has used no value yet."""
        with self._lock:
            self._used_before |= self._used
            self._used.clear()

    def end(self):
        """End a run of the page, and make room for what it built: graphs and Keras models too."""
        with self._lock:
            self._used_before.clear()
        self.make_room()

    def get(self, place, key, use=True):
        """(value,) of a place if its key is ``key``, else None; ``use``: whether the current run uses the value."""
        with self._lock:
            entry = self._places.get(place)
            if entry is None or entry.key != key:
                return None
            if use:
                self._used.add(place)
                self._places.move_to_end(place)
                entry.used_at = time.monotonic()
            return (entry.value,)

    def put(self, place, key, value, on_drop=None, used=True):
        """Store a value; ``on_drop()`` is called when it is dropped to make room; ``used``: see ``use`` of ``get``."""
        entry = _Entry(key, value, on_drop, array_bytes((key, value)), time.monotonic())
        with self._lock:
            self._places[place], self._bytes = entry, None
            self._places.move_to_end(place)
            if used:
                self._used.add(place)
        self.make_room()

    def make_room(self):
        """Drop values that the run has not used, the least recently used first, until the rest fits into the bounds."""
        with self._lock:
            while self.bytes > self._most and self._drop_besides(self._used):
                pass
        if self._budget is not None:
            self._budget.make_room()

    def oldest(self):
        """The time at which the value that is dropped next was last used; None if the page needs all of them."""
        with self._lock:
            place = self._unneeded(self._used | self._used_before)
            return None if place is None else self._places[place].used_at

    def drop_oldest(self):
        """Drop the value that was used longest ago, if the page does not need all of them."""
        with self._lock:
            needed = self._used | self._used_before
        self._drop_besides(needed)

    def _drop_besides(self, needed):
        """Drop the value that was used longest ago of those that are not needed; returns whether there was one."""
        with self._lock:
            entry, self._bytes = self._places.pop(self._unneeded(needed), None), None
        if entry is not None and entry.on_drop:
            entry.on_drop()
        return entry is not None

    def drop_all(self):
        """Drop all values: nobody is here who needs them."""
        with self._lock:
            entries = list(self._places.values())
            self._places.clear()
            self._bytes = 0
        for entry in entries:
            if entry.on_drop:
                entry.on_drop()

    def _unneeded(self, needed):
        """The place that was used longest ago of those not in ``needed``, or of an idle visit; None if none."""
        idle = time.monotonic() - _IDLE
        places = self._places.items()
        return next((place for place, entry in places if place not in needed or entry.used_at < idle), None)

    def drop(self, place):
        """Drop the value of a place."""
        with self._lock:
            self._places.pop(place, None)
            self._bytes = None

    @property
    def bytes(self):
        """The bytes of all values; an array that several places hold counts once."""
        with self._lock:
            if self._bytes is None:
                bytes_by_id = {}
                for entry in self._places.values():
                    bytes_by_id.update(entry.array_bytes)
                self._bytes = sum(bytes_by_id.values())
            return self._bytes


@dataclasses.dataclass(eq=False)
class _Entry:
    key: object
    value: object
    on_drop: object
    array_bytes: dict
    used_at: float


def array_bytes(value):
    """The bytes of the arrays and texts in a value: dict from the identity of each array or long text to its bytes.

    The function looks into sequences, dicts and dataclasses. A view of an array counts as the whole array, as it keeps
    the array in memory. All short texts have one entry, under a new object.
    """
    bytes_by_id, seen, stack, small = {}, set(), [value], 0
    while stack:
        item = stack.pop()
        if isinstance(item, (str, bytes)):
            if len(item) < _SMALL:
                small += len(item)
            else:
                bytes_by_id[id(item)] = len(item)
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            while isinstance(item.base, np.ndarray):
                item = item.base
            bytes_by_id[id(item)] = item.nbytes
        elif hasattr(item, "numpy") and hasattr(item, "shape"):  # a tensor
            bytes_by_id[id(item)] = item.dtype.size * int(np.prod(item.shape))
        elif isinstance(item, collections.abc.Mapping):
            stack += [*item.keys(), *item.values()]
        elif isinstance(item, (tuple, list, set, frozenset)):
            stack += item
        elif dataclasses.is_dataclass(item) and not isinstance(item, type):
            stack += [getattr(item, field.name) for field in dataclasses.fields(item)]
    return {**bytes_by_id, object(): small}


def visitor_cache() -> SessionCache:
    """The cache of this visit."""
    if "_kept" not in st.session_state:
        st.session_state["_kept"] = SessionCache(state.limits().max_session_megabytes * 1_000_000, memory_budget())
    return st.session_state["_kept"]


def cached(name, key, make):
    """The value of ``make()`` for ``key``, from the visitor's cache if it was computed for the same key.

    Args:
        name: of the place in the cache, which holds one value.
        key: the inputs of the value; any object with ``==``.
        make: callable () -> value.
    """
    entry = visitor_cache().get(name, key)
    if entry is None:
        # Drop the old value before the new one is computed, so that they are never in memory together.
        visitor_cache().drop(name)
        entry = (make(),)
        visitor_cache().put(name, key, entry[0])
    return entry[0]
